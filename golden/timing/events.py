"""The agenda of a timing model: what happens next, in the order of the cycles."""

from collections.abc import Callable
from heapq import heappop, heappush

__all__ = ["Agenda"]


class Agenda:
    """Calls what was put into it, cycle by cycle; within a cycle in the order in which it was put in.

    Attributes:
        now: the cycle.
    """

    def __init__(self):
        self.now = 0
        self._heap: list[tuple[int, int, Callable, tuple]] = []
        self._number = 0

    def at(self, cycle: int, call: Callable, *arguments: object) -> None:
        """Call something in a cycle that is not over."""
        self._number += 1
        heappush(self._heap, (cycle, self._number, call, arguments))

    def run(self) -> None:
        """Call everything, also what is put in meanwhile."""
        heap = self._heap
        while heap:
            self.now, _, call, arguments = heappop(heap)
            call(*arguments)
