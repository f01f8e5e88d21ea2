"""Cycle-accurate model of a router."""

from collections import deque
from collections.abc import Mapping, Sequence

from neuroncore_rtl.hdl.link.route import LOCAL_PORTS, link_output, output_count, reachable
from neuroncore_rtl.hdl.link.router import RouterOutput
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.simulation import next_turn

__all__ = ["RouterModel", "came_from"]


def came_from(instance: Instance) -> list[tuple[int | None, int]]:
    """Return direction and virtual channel of each input, by number; the direction of a core's input is None."""
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
    SLOTS = 2
    """Number of slots in the buffer of an input."""

    def __init__(self, instance: Instance):
        sources = came_from(instance)
        self.inputs = [deque() for _ in sources]
        self.outputs = []
        for number in range(output_count(instance)):
            inputs = [n for n, source in enumerate(sources) if number in reachable(instance, *source)]
            self.outputs.append(Output(inputs[:-LOCAL_PORTS], inputs[-LOCAL_PORTS:]))

    def ready(self, number: int) -> bool:
        return len(self.inputs[number]) < self.SLOTS

    def step(self, offered: Mapping[int, tuple[int, int]], taken: Sequence[bool]) -> None:
        """Advance by one cycle; `offered` has a flit and its output by input, `taken` acceptance by output."""
        ready = [self.ready(number) for number in range(len(self.inputs))]
        heads = [queue[0] if queue else None for queue in self.inputs]
        for number, output in enumerate(self.outputs):
            if output.flit is not None and not taken[number]:
                continue
            chosen = output.choose({n for n, head in enumerate(heads) if head and head[1] == number})
            output.flit = None if chosen is None else self.inputs[chosen].popleft()[0]
        for number, flit in offered.items():
            if ready[number]:
                self.inputs[number].append(flit)
