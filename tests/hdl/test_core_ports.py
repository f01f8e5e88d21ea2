from types import SimpleNamespace

import pytest
from amaranth.hdl import Module, Signal

from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.core_ports import axi_id_bits, core_counters, core_signature, sharers
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.watchdog import Watchdog
from neuroncore_rtl.spec import isa, link
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa.engine import RECORDS_AHEAD
from tests.hdl.simulation import drive, simulate

ALONE = PRESETS["tiny"]
ONE_OF_4 = ALONE.with_overrides(cores=4)
LINKS = {"number", "link_i", "link_o", "dead"}


@pytest.mark.parametrize(
    ("ports", "shared"),
    [
        (1, ["d0 d1 d2 d3 d4 first c0 c1"]),
        (2, ["d0 d2 d4 first c0", "d1 d3 c1"]),
        (3, ["d0 d3 first c0", "d1 d4 c1", "d2"]),
        (4, ["d0 d4 first c0", "d1 c1", "d2", "d3"]),
    ],
)
def test_engines_and_channels_are_dealt_out_to_the_ports(ports, shared):
    config = Config(rows=4, columns=4, dma_engines=5, hbm_ports=ports)
    engines = [f"d{n}" for n in range(5)]
    assert [" ".join(port) for port in sharers(config, engines, ["first"], ["c0", "c1"])] == shared


def test_ids_have_room_for_the_channels():
    # A single core has two DMA engines, the fetcher and boot; four more managers need one more bit.
    assert (axi_id_bits(ALONE), axi_id_bits(ONE_OF_4)) == (2, 3)
    config = Config(rows=4, columns=4, dma_engines=6, hbm_ports=4)
    assert axi_id_bits(config) == 2 and axi_id_bits(config.with_overrides(cores=2)) == 3


def test_a_core_that_is_alone_has_nothing_of_links():
    alone, one = Core(ALONE), Core(ONE_OF_4)
    assert set(alone.signature.members) == set(core_signature(ALONE).members)
    assert set(one.signature.members) - set(alone.signature.members) == LINKS
    assert one.queues == alone.queues + 1 == isa.queue_count(ONE_OF_4)
    assert "collective" not in dict(core_counters(ALONE)) and "collective" in dict(core_counters(ONE_OF_4))
    assert "oldest" not in Queue(isa.Engine.DMA).signature.members
    assert "peer" not in Watchdog(3).signature.members


def test_a_flit_either_way_is_progress():
    core = Core(ONE_OF_4, 16)
    m = Module()
    collective = CollectiveEngine(16, ONE_OF_4.hbm_bytes, 4).signature.create()
    queue = Queue(isa.Engine.COLLECTIVE, 1, RECORDS_AHEAD[isa.Engine.COLLECTIVE]).signature.create()
    registers = Registers(ONE_OF_4).signature.create()
    watchdog = Watchdog(core.queues, isa.collective_queue(ONE_OF_4)).signature.create()
    units = SimpleNamespace(collective=collective, queues=[queue], registers=registers, watchdog=watchdog)
    moves = Signal()
    m.d.comb += moves.eq(core._connect_links(m, units))
    pairs = [(core.link_i[c].valid, collective.i[c].ready) for c in range(link.CHANNELS)]
    pairs += [(collective.o[c].valid, core.link_o[c].ready) for c in range(link.CHANNELS)]

    async def bench(ctx):
        for valid, ready in pairs:
            for offered, taken in ((1, 0), (0, 1), (1, 1), (0, 0)):
                ctx.set(valid, offered)
                ctx.set(ready, taken)
                assert ctx.get(moves) == (offered and taken)
        drive(ctx, core, number=3, dead=0b0110)
        ctx.set(queue.oldest, 0x1280)
        ctx.set(collective.peer, {"valid": 1, "core": 2})
        assert (ctx.get(collective.core), ctx.get(registers.core_number), ctx.get(collective.dead)) == (3, 3, 0b0110)
        assert (ctx.get(watchdog.peer.core), ctx.get(watchdog.peer_address)) == (2, 0x1280)

    simulate(m, bench)
