import random
from collections import deque
from collections.abc import Mapping, Sequence

import pytest

from neuroncore_rtl.hdl.link.route import LOCAL_PORTS, link_output, output_count, reachable
from neuroncore_rtl.hdl.link.router import Router, RouterOutput
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.link.test_router import RING, cases, flit, streams_of, torus
from tests.hdl.simulation import next_turn, pulse, simulated


def came_from(instance: Instance) -> list[tuple[int | None, int]]:
    links = [(side, vc) for side in range(instance.directions) for vc in range(VIRTUAL_CHANNELS)]
    assert [link_output(side, vc) for side, vc in links] == list(range(len(links)))
    return links + [(None, 0)] * LOCAL_PORTS


class Output:
    """An output register and its arbiter for requests of link inputs (`passing`) and of core inputs (`own`)."""

    def __init__(self, passing: Sequence[int], own: Sequence[int]):
        self.groups = (passing, own)
        self.last = [len(group) - 1 for group in self.groups]
        self.passed = 0
        self.flit = None

    def choose(self, requests: set[int]) -> int | None:
        """Return the input that gets the grant, or None, and update the round robin."""
        pending = [any(number in requests for number in group) for group in self.groups]
        if not any(pending):
            return None
        own = pending[1] and (not pending[0] or self.passed == RouterOutput.SHARE - 1)
        self.passed = 0 if own else self.passed + pending[1]
        group = self.groups[own]
        bits = sum(1 << position for position, number in enumerate(group) if number in requests)
        self.last[own] = next_turn(self.last[own], bits, len(group))
        return group[self.last[own]]


class RouterModel:
    """Cycle-accurate model of a router; the buffer of an input has two slots."""

    def __init__(self, instance: Instance):
        sources = came_from(instance)
        self.inputs = [deque() for _ in sources]
        self.outputs = []
        for number in range(output_count(instance)):
            inputs = [n for n, source in enumerate(sources) if number in reachable(instance, *source)]
            self.outputs.append(Output(inputs[:-LOCAL_PORTS], inputs[-LOCAL_PORTS:]))

    def ready(self) -> list[bool]:
        return [len(queue) < 2 for queue in self.inputs]

    def step(self, offered: Mapping[int, tuple[int, int]], taken: Sequence[bool]) -> None:
        """Advance by one cycle; `offered` has a flit and its output by input, `taken` acceptance by output."""
        ready = self.ready()
        heads = [queue[0] if queue else None for queue in self.inputs]
        for number, output in enumerate(self.outputs):
            if output.flit is not None and not taken[number]:
                continue
            chosen = output.choose({n for n, head in enumerate(heads) if head and head[1] == number})
            output.flit = None if chosen is None else self.inputs[chosen].popleft()[0]
        for number, entry in offered.items():
            if ready[number]:
                self.inputs[number].append(entry)


def routes_of(instance, chip, target):
    """Return the routes from each input of a chip: destination, channel and output, of all outputs or of `target`."""
    routes = cases(instance)
    return [
        [
            (destination, channel, output)
            for (at, destination, channel), output in routes.get(source, {}).items()
            if at == chip and target in (None, output)
        ]
        for source in came_from(instance)
    ]


class Machine:
    def __init__(self, ctx, router, rng):
        self.ctx, self.rng, self.instance = ctx, rng, router.instance
        self.ins, self.outs = streams_of(router, self.instance)
        self.passed = 0
        self.fresh()

    def fresh(self):
        self.model, self.offered = RouterModel(self.instance), {}

    async def play(self, cycles, routes, busy, drain):
        ctx, rng, model, offered = self.ctx, self.rng, self.model, self.offered
        for _ in range(cycles):
            for number, choices in enumerate(routes):
                if choices and number not in offered and rng.random() < busy:
                    destination, channel, output = rng.choice(choices)
                    given = flit(destination, channel, rng.getrandbits(64), source=rng.getrandbits(7))
                    offered[number] = given, output
                    ctx.set(self.ins[number].payload.as_value(), given)
                ctx.set(self.ins[number].valid, number in offered)
            taken = [rng.random() < drain for _ in self.outs]
            for number, stream in enumerate(self.outs):
                ctx.set(stream.ready, taken[number])
                shown = model.outputs[number].flit
                assert ctx.get(stream.valid) == (shown is not None)
                assert shown is None or ctx.get(stream.payload.as_value()) == shown
                self.passed += shown is not None and taken[number]
            ready = model.ready()
            assert [ctx.get(stream.ready) for stream in self.ins] == ready
            model.step(offered, taken)
            self.offered = offered = {number: entry for number, entry in offered.items() if not ready[number]}
            await ctx.tick()


@pytest.mark.parametrize("instance", [RING, torus(3, 2)], ids=["ring", "torus"])
@simulated(Router)
async def test_every_stream_in_every_cycle_is_that_of_the_model(ctx, router, reset, instance):
    machine = Machine(ctx, router, random.Random(1))

    async def again():
        await pulse(ctx, reset)
        machine.fresh()

    outputs = range(output_count(instance)) if instance is RING else ()
    for chip in range(instance.chips):
        ctx.set(router.chip, chip)
        for target in (*outputs, None):
            routes = routes_of(instance, chip, target)
            if any(routes):
                busy, drain = (0.7, 0.6) if target is None else (1, 0.95)
                await machine.play(14, routes, busy, drain)
                await again()
                await machine.play(80 if target is None else 22, routes, busy, drain)
                await machine.play(40, routes, 0.3, drain)
        await again()
    assert machine.passed > 900
