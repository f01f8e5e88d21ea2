import random

from neuroncore_rtl.hdl.link.router import Router
from tests.hdl.link.routers import RouterModel, came_from
from tests.hdl.link.test_router import RING, cases, flit, streams_of
from tests.hdl.simulation import pulse, simulated

NUMBERS = range(len(came_from(RING)))


def streams(router, way):
    return streams_of(router, RING)[way]


def random_flits(rng, chip, target):
    """Return a generator of flits with their outputs for each input, or None."""
    routes = cases(RING)

    def maker(source):
        known = [(key, output) for key, output in routes.get(source, {}).items() if key[0] == chip]
        some = [(key, output) for key, output in known if target in (None, output)]

        def draw():
            (_, destination, channel), output = rng.choice(some)
            return flit(destination, channel, rng.getrandbits(64), source=rng.getrandbits(7)), output

        return draw if some else None

    return [maker(source) for source in came_from(RING)]


class Machine:
    def __init__(self, ctx, router, rng):
        self.ctx, self.rng = ctx, rng
        self.ins, self.outs = streams(router, 0), streams(router, 1)
        self.passed = 0
        self.fresh()

    def fresh(self):
        self.model, self.offered = RouterModel(RING), {}

    async def play(self, cycles, makers, busy, drain):
        ctx, rng, model, offered = self.ctx, self.rng, self.model, self.offered
        for _ in range(cycles):
            for number, draw in enumerate(makers):
                if draw and number not in offered and rng.random() < busy:
                    offered[number] = draw()
                    ctx.set(self.ins[number].payload.as_value(), offered[number][0])
                ctx.set(self.ins[number].valid, number in offered)
            taken = [rng.random() < drain for _ in self.outs]
            for number, stream in enumerate(self.outs):
                ctx.set(stream.ready, taken[number])
                shown = model.outputs[number].flit
                assert ctx.get(stream.valid) == (shown is not None)
                assert shown is None or ctx.get(stream.payload.as_value()) == shown
                self.passed += shown is not None and taken[number]
            ready = [model.ready(number) for number in NUMBERS]
            assert [ctx.get(stream.ready) for stream in self.ins] == ready
            model.step(offered, taken)
            for number in [number for number in offered if ready[number]]:
                del offered[number]
            await ctx.tick()


@simulated(lambda: Router(RING))
async def test_every_stream_in_every_cycle_is_that_of_the_model(ctx, router, reset):
    rng = random.Random(1)

    async def again():
        await pulse(ctx, reset)
        machine.fresh()

    machine = Machine(ctx, router, rng)
    for chip in range(RING.chips):
        ctx.set(router.chip, chip)
        for target in (*NUMBERS, None):
            makers = random_flits(rng, chip, target)
            if any(makers):
                busy, drain = (0.7, 0.6) if target is None else (1, 0.95)
                await machine.play(14, makers, busy, drain)
                await again()
                await machine.play(80 if target is None else 22, makers, busy, drain)
                await machine.play(40, makers, 0.3, drain)
        await again()
    assert machine.passed > 900
