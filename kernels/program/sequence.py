"""Instructions of the vector and the scalar engine in program order, with what each must wait for.

The engines run at the same time. Within an engine instructions start in order, and with `overlap` before the earlier
ones have written all; between engines nothing holds order but a wait. Both are worked out here, from the bytes that
instructions touch, so that the result is that of running them one after the other.
"""

from dataclasses import dataclass, replace

from neuroncore_rtl.kernels.program.footprint import check_apart
from neuroncore_rtl.kernels.program.order import Order
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Context, Elementwise

__all__ = ["Entry", "Sequence"]

ENGINES = ("vector", "scalar")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An instruction in its place.

    Arguments:
        engine: "vector" or "scalar".
        instruction: with `overlap` as the instructions before it allow.
        vector, scalar: instructions of either engine that must have retired before it may start; 0 for its own, which
            starts instructions in order.
    """

    engine: str
    instruction: Elementwise
    vector: int = 0
    scalar: int = 0


class Sequence:
    """A program under construction.

    Arguments:
        config: the machine's parameters.

    Attributes:
        entries: what was appended, in program order.
    """

    def __init__(self, config: Config):
        self.config = config
        self.entries: list[Entry] = []
        self._order = Order(lanes=len(ENGINES), queues=len(ENGINES))
        self._awaited = [0] * len(ENGINES)  # of the other engine, by the last instruction

    def append(self, instruction: Elementwise) -> Entry:
        """Append an instruction, whose own `overlap` does not matter; return its entry.

        Raises:
            ValueError: if it is not legal, or writes what it also reads other than element for element: a tensor that
                is written must be the same as a source or apart from it. Scalars are read before anything is written.
        """
        instruction.check(Context(self.config))
        check_apart(instruction)
        lane = ENGINES.index(instruction.engine.name.lower())
        other = 1 - lane
        for awaited in self._order.conflicts(lane, instruction, ordered=(lane,)).values():
            self._order.wait(lane, other, awaited)
            self._awaited[lane] = awaited
        independent = not self._order.reads_unfinished(lane, lane, instruction)
        if not independent:
            self._order.settle(lane, lane)
        self._order.add(lane, lane, instruction)
        waits = {ENGINES[other]: self._awaited[lane]}
        entry = Entry(engine=ENGINES[lane], instruction=replace(instruction, overlap=independent), **waits)
        self.entries.append(entry)
        return entry
