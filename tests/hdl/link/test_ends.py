import random
import zlib
from collections import deque

import pytest

from neuroncore_rtl.hdl.link.end import LinkEnd
from neuroncore_rtl.hdl.link.flit import body_layout, flit_layout, frame_layout
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.link.ends import BAD, EndModel, Frame
from tests.hdl.link.pair import ENDS, Pair
from tests.hdl.simulation import drive, simulated

LATENCY, BYTES = 2, 1
VCS = range(VIRTUAL_CHANNELS)
BODY, FRAME = body_layout(BYTES), frame_layout(BYTES)

PHASES = (
    {"offer": 1, "drain": 1, "errors": 0},
    {"offer": 0.3, "drain": 0.7, "errors": 0.05},
    {"offer": 1, "drain": 0.3, "errors": 0.02},
    {"offer": 0.7, "drain": 0.9, "errors": 0.3},
    {"offer": 0, "drain": 1, "errors": 0.1},
    {"offer": 1, "drain": 1, "errors": 0.05},
)
"""Probabilities per cycle that a source has a flit, that a sink is ready, and that a frame is disturbed."""


class Machine:
    """Drives both ends of a link, and advances their models."""

    def __init__(self, ctx, pair, rng):
        self.ctx, self.pair, self.rng = ctx, pair, rng
        self.models = [EndModel(LATENCY) for _ in ENDS]
        self.fresh()

    def fresh(self):
        self.models = [EndModel(LATENCY, model.memory, model.read) for model in self.models]
        self.offered = [[None] * VIRTUAL_CHANNELS for _ in ENDS]
        self.wires = [deque([None] * (LATENCY + 1)) for _ in ENDS]

    async def cycle(self, offer, drain, errors):
        ctx, pair, rng = self.ctx, self.pair, self.rng
        taken, arrivals = [[rng.random() < drain for _ in VCS] for _ in ENDS], []
        for end in ENDS:
            for vc in VCS:
                if self.offered[end][vc] is None and rng.random() < offer:
                    self.offered[end][vc] = rng.getrandbits(flit_layout(BYTES).size)
                flit = self.offered[end][vc]
                drive(
                    ctx, pair.i[end][vc], valid=flit is not None, payload=rng.getrandbits(8) if flit is None else flit
                )
                ctx.set(pair.o[end][vc].ready, taken[end][vc])
            disturbance = rng.choice(("flip", "drop", "repeat")) if rng.random() < errors else None
            arrivals.append(self.disturb(end, disturbance))
        for end, model in enumerate(self.models):
            self.compare(end, model)
        await ctx.tick()
        for end, model in enumerate(self.models):
            ready = model.ready([flit is not None for flit in self.offered[end]])
            self.wires[end].appendleft(model.tx)
            self.wires[end].pop()
            model.step(self.offered[end], taken[end], arrivals[1 - end])
            self.offered[end] = [None if ready[vc] else self.offered[end][vc] for vc in VCS]

    def disturb(self, end, what):
        bit = self.rng.randrange(FRAME.size)
        self.ctx.set(self.pair.disturbance[end], {"flip_bit": bit} | ({what: 1} if what else {}))
        frame = self.wires[end][LATENCY if what == "repeat" else LATENCY - 1]
        return None if what == "drop" else BAD if what == "flip" and frame else frame

    def compare(self, end, model):
        ctx, pair = self.ctx, self.pair
        frame = ctx.get(pair.tx[end])
        body = frame.body
        bits = body.as_bits()
        assert frame.crc == zlib.crc32(bits.to_bytes((BODY.size + 7) // 8, "little"))
        shown = (body.flit.as_bits(), body.vc)
        flit, filler = (shown, None) if body.valid else (None, shown)
        credits = tuple(body.credits_returned[vc] for vc in VCS)
        assert Frame(flit, body.sequence, body.answer, body.expected, body.retry, credits, filler) == model.tx
        ready = model.ready([flit is not None for flit in self.offered[end]])
        for vc in VCS:
            stream, shown = pair.o[end][vc], model.head(vc)
            assert ctx.get(pair.i[end][vc].ready) == ready[vc]
            assert ctx.get(stream.valid) == (shown is not None)
            assert shown is None or ctx.get(stream.payload.as_value()) == shown
        used = ctx.get(pair.credits_used[end])
        assert [used[vc] for vc in VCS] == [model.window - free for free in model.free]
        counted = ctx.get(pair.counters[end])
        assert {name: counted[name] for name in model.counters} == model.counters
        assert ctx.get(pair.dead[end]) == model.dead


@pytest.mark.parametrize("cycles", [150])
@simulated(lambda: Pair(BYTES, LATENCY))
async def test_all_that_the_ends_show_in_every_cycle_is_that_of_their_models(ctx, pair, reset, cycles):
    machine = Machine(ctx, pair, random.Random(cycles))
    # Each phase ends with a reset in the middle of traffic; all sequence numbers wrap in the last phase.
    for number, phase in enumerate(PHASES):
        for _ in range(cycles * (5 if number == len(PHASES) - 1 else 1)):
            await machine.cycle(**phase)
        assert number or min(model.counters["flits"] for model in machine.models) > 100
        ctx.set(reset, 1)
        await machine.cycle(**phase)
        ctx.set(reset, 0)
        last = machine.models
        machine.fresh()
    for model in last:
        assert len(model.flits) > 300 and min(model.counters.values()) > 0


@simulated(lambda: Pair(BYTES, LATENCY))
async def test_a_dead_end_stays_dead(ctx, pair):
    # The link is dead after `DEAD_CYCLES` without a frame, and remains dead even if frames arrive.
    silent, heard = LinkEnd.DEAD_CYCLES, LinkEnd.DEAD_CYCLES + 100
    dead = []
    for drop, cycles in ((1, silent), (0, heard)):
        ctx.set(pair.disturbance[1], {"drop": drop})
        for _ in range(cycles):
            dead.append(ctx.get(pair.dead[0]))
            await ctx.tick()
    assert dead == [0] * silent + [1] * heard
