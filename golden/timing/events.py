"""Event queue of the timing model, ordered by cycle."""

from collections.abc import Callable
from heapq import heappop, heappush

__all__ = ["Agenda"]


class Agenda:
    """Event queue: calls functions in the order of their cycles; within a cycle, in the order of insertion."""

    def __init__(self):
        self.now = 0
        self._heap: list[tuple[int, int, Callable, tuple]] = []
        self._number = 0

    def at(self, cycle: int, call: Callable, *arguments: object) -> None:
        """Schedule the call `call(*arguments)` in `cycle`, the current cycle or a later one."""
        self._number += 1
        heappush(self._heap, (cycle, self._number, call, arguments))

    def run_all(self) -> None:
        """Make all calls, including those scheduled meanwhile."""
        heap = self._heap
        while heap:
            self.now, _, call, arguments = heappop(heap)
            call(*arguments)
