"""A model of a router: which flits it takes, and where it offers them, in every cycle."""

from collections import deque
from collections.abc import Mapping, Sequence

from neuroncore_rtl.hdl.link.route import LOCAL_PORTS, link_output, output_count, reachable
from neuroncore_rtl.hdl.link.router import RouterOutput
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.simulation import next_turn

__all__ = ["RouterModel", "came_from"]


def came_from(instance: Instance) -> list[tuple[int | None, int]]:
    """Return side and virtual channel of each input, in the order of their numbers; no side is a core's."""
    links = [(side, vc) for side in range(instance.directions) for vc in range(VIRTUAL_CHANNELS)]
    assert [link_output(side, vc) for side, vc in links] == list(range(len(links)))
    return links + [(None, 0)] * LOCAL_PORTS


class Output:
    """An output: the flit on offer, and whose turn is next.

    Arguments:
        passing, own: numbers of the inputs whose flits may go here: of links, and of cores.
    """

    def __init__(self, passing: Sequence[int], own: Sequence[int]):
        self.groups = (passing, own)
        self.last = [len(group) - 1 for group in self.groups]
        self.passed = 0
        self.flit = None

    def choose(self, asking: set[int]) -> int | None:
        """Return whose flit is taken if there is space, and move the turns on."""
        waits = [any(number in asking for number in group) for group in self.groups]
        if not any(waits):
            return None
        own = waits[1] and (not waits[0] or self.passed == RouterOutput.SHARE - 1)
        self.passed = 0 if own else self.passed + waits[1]
        group = self.groups[own]
        bits = sum(1 << place for place, number in enumerate(group) if number in asking)
        self.last[own] = next_turn(self.last[own], bits, len(group))
        return group[self.last[own]]


class RouterModel:
    """A router; `step` moves it on by a cycle.

    Arguments:
        instance: the chips and how they are tied.
    """

    PLACES = 2
    """Flits of an input."""

    def __init__(self, instance: Instance):
        sources = came_from(instance)
        self.inputs = [deque() for _ in sources]
        self.outputs = []
        for number in range(output_count(instance)):
            asking = [n for n, source in enumerate(sources) if number in reachable(instance, *source)]
            passing, own = asking[:-LOCAL_PORTS], asking[-LOCAL_PORTS:]
            self.outputs.append(Output(passing, own))

    def ready(self, number: int) -> bool:
        """Return whether an input takes a flit in this cycle."""
        return len(self.inputs[number]) < self.PLACES

    def step(self, offered: Mapping[int, tuple[int, int]], taken: Sequence[bool]) -> None:
        """Move on by a cycle.

        Arguments:
            offered: by input the flit and its output.
            taken: of each output, whether its flit is taken.
        """
        ready = [self.ready(number) for number in range(len(self.inputs))]
        heads = [queue[0] if queue else None for queue in self.inputs]
        for number, output in enumerate(self.outputs):
            if output.flit is not None and not taken[number]:
                continue
            asking = {place for place, head in enumerate(heads) if head and head[1] == number}
            chosen = output.choose(asking)
            output.flit = None if chosen is None else self.inputs[chosen].popleft()[0]
        for number, flit in offered.items():
            if ready[number]:
                self.inputs[number].append(flit)
