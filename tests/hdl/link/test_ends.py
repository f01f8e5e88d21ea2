import random
import zlib
from collections import deque

import pytest

from neuroncore_rtl.hdl.link.flit import body_layout, flit_layout, frame_layout
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.link.ends import BAD, EndModel, Frame
from tests.hdl.link.pair import ENDS, Pair
from tests.hdl.simulation import drive, expect, simulated, slow

VCS = range(VIRTUAL_CHANNELS)

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

    def __init__(self, ctx, pair, rng, size, latency):
        self.ctx, self.pair, self.rng, self.size, self.latency = ctx, pair, rng, size, latency
        self.models = [EndModel(latency) for _ in ENDS]
        self.fresh()

    def fresh(self):
        self.models = [EndModel(self.latency, model.memory, model.read) for model in self.models]
        self.delivered = [[[] for _ in VCS] for _ in ENDS]
        self.offered = [[None] * VIRTUAL_CHANNELS for _ in ENDS]
        self.wires = [deque([None] * (self.latency + 1)) for _ in ENDS]

    async def cycle(self, offer, drain, errors):
        ctx, pair, rng = self.ctx, self.pair, self.rng
        taken, arrivals = [[rng.random() < drain for _ in VCS] for _ in ENDS], []
        for end in ENDS:
            for vc, flit in enumerate(self.offered[end]):
                if flit is None and rng.random() < offer:
                    self.offered[end][vc] = flit = rng.getrandbits(flit_layout(self.size).size)
                payload = rng.getrandbits(8) if flit is None else flit
                drive(ctx, pair.i[end][vc], valid=flit is not None, payload=payload)
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
            for vc in VCS:
                if taken[end][vc] and model.head(vc) is not None:
                    self.delivered[end][vc].append(model.head(vc))
            model.step(self.offered[end], taken[end], arrivals[1 - end])
            self.offered[end] = [None if ready[vc] else self.offered[end][vc] for vc in VCS]

    def disturb(self, end, what):
        bit = self.rng.randrange(frame_layout(self.size).size)
        self.ctx.set(self.pair.disturbance[end], {"flip_bit": bit} | ({what: 1} if what else {}))
        frame = self.wires[end][self.latency - (what != "repeat")]
        return None if what == "drop" else BAD if what == "flip" and frame else frame

    def compare(self, end, model):
        ctx, pair = self.ctx, self.pair
        frame = ctx.get(pair.tx[end])
        body = frame.body
        assert frame.crc == zlib.crc32(body.as_bits().to_bytes(-(-body_layout(self.size).size // 8), "little"))
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
        expect(ctx, pair.counters[end], **model.counters)
        assert ctx.get(pair.dead[end]) == model.dead

    def check_order(self):
        """Check that every delivered flit is the next one that the other end accepted in its virtual channel."""
        for end, model in enumerate(self.models):
            for vc, found in enumerate(self.delivered[1 - end]):
                sent = [flit for flit, channel in model.flits if channel == vc]
                assert found == sent[: len(found)] and len(found) >= len(sent) - 2 * model.window


@pytest.mark.parametrize(
    ("size", "latency", "cycles"), [(1, 2, 150), (8, 1, 50), *slow((2, 4, 200), (2, 13, 400), (2, 64, 1000))]
)
@simulated(lambda size, latency: Pair(size, latency))
async def test_all_that_the_ends_show_in_every_cycle_is_that_of_their_models(ctx, pair, reset, size, latency, cycles):
    machine = Machine(ctx, pair, random.Random(cycles), size, latency)
    # Each phase ends with a reset in the middle of traffic; with (1, 2) all sequence numbers wrap in the last phase.
    for number, phase in enumerate(PHASES):
        for _ in range(cycles * (5 if number == len(PHASES) - 1 else 1)):
            await machine.cycle(**phase)
        assert number or min(model.counters["flits"] for model in machine.models) > cycles * 2 // 3
        machine.check_order()
        ctx.set(reset, 1)
        await machine.cycle(**phase)
        ctx.set(reset, 0)
        last = machine.models
        machine.fresh()
    for model in last:
        assert len(model.flits) > (2 * cycles if latency < 5 else 300) and min(model.counters.values()) > 0
