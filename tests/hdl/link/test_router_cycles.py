"""A router beside its model, every stream in every cycle."""

import random

from neuroncore_rtl.hdl.link.router import Router
from tests.hdl.link.routers import RouterModel, came_from
from tests.hdl.link.test_router import RING, cases, flit
from tests.hdl.simulation import pulse, simulated

NUMBERS = range(len(came_from(RING)))


def streams(router, way):
    """Return the streams of one way by their numbers."""
    links, local = ((router.links_in, router.local_in), (router.links_out, router.local_out))[way]
    return [*(links[side][vc] for side in range(RING.directions) for vc in range(2)), *local]


def random_flits(dice, chip, target):
    """Return of each input what makes its flits, with their outputs: all for one output, or for any if that is None."""
    routes = cases(RING)

    def maker(source):
        known = [(key, output) for key, output in routes.get(source, {}).items() if key[0] == chip]
        some = [(key, output) for key, output in known if target in (None, output)]

        def draw():
            (_, destination, channel), output = dice.choice(some)
            return flit(destination, channel, dice.getrandbits(64), source=dice.getrandbits(7)), output

        return draw if some else None

    return [maker(source) for source in came_from(RING)]


class Machine:
    """Plays what is around a router, and compares it with its model. Arguments: dice: of what happens."""

    def __init__(self, ctx, router, dice):
        self.ctx, self.dice = ctx, dice
        self.ins, self.outs = streams(router, 0), streams(router, 1)
        self.passed = 0
        self.fresh()

    def fresh(self):
        """Begin again."""
        self.model, self.offered = RouterModel(RING), {}

    async def run(self, cycles, makers, busy, drain):
        """Run for some cycles; busy: how likely a free input gets a flit in one, drain: an output's is taken."""
        ctx, dice, model, offered = self.ctx, self.dice, self.model, self.offered
        for _ in range(cycles):
            for place, draw in enumerate(makers):
                if draw and place not in offered and dice.random() < busy:
                    offered[place] = draw()
                    ctx.set(self.ins[place].payload.as_value(), offered[place][0])
                ctx.set(self.ins[place].valid, place in offered)
            taken = [dice.random() < drain for _ in self.outs]
            for place, stream in enumerate(self.outs):
                ctx.set(stream.ready, taken[place])
                shown = model.outputs[place].flit
                assert ctx.get(stream.valid) == (shown is not None)
                assert shown is None or ctx.get(stream.payload.as_value()) == shown
                self.passed += shown is not None and taken[place]
            ready = [model.ready(place) for place in NUMBERS]
            assert [ctx.get(stream.ready) for stream in self.ins] == ready
            model.step(offered, taken)
            for place in [place for place in offered if ready[place]]:
                del offered[place]
            await ctx.tick()


@simulated(lambda: Router(RING))
async def test_every_stream_in_every_cycle_is_that_of_the_model(ctx, router, reset):
    """On each chip of a ring, all inputs to each output, and to any, and few at once; a reset comes in the middle of
    work."""
    dice = random.Random(1)

    async def again():
        await pulse(ctx, reset)
        machine.fresh()

    machine = Machine(ctx, router, dice)
    for chip in range(RING.chips):
        ctx.set(router.chip, chip)
        for target in (*NUMBERS, None):
            makers = random_flits(dice, chip, target)
            if any(makers):
                busy, drain = (0.7, 0.6) if target is None else (1, 0.95)
                await machine.run(14, makers, busy, drain)
                await again()
                await machine.run(80 if target is None else 22, makers, busy, drain)
                await machine.run(40, makers, 0.3, drain)
        await again()
    assert machine.passed > 900
