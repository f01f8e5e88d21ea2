"""Cycles by the line of the kernel that appended an instruction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.source import Line
from neuroncore_rtl.spec.isa import Engine

__all__ = ["LineCycles", "cycles_by_line", "line_table"]


@dataclass(frozen=True)
class LineCycles:
    """What a line of a kernel cost.

    Arguments:
        cycles: in which an engine had an instruction of the line, several at once counted once.
        records: instructions that the line has become.
    """

    cycles: int
    records: int


def cycles_by_line(image: Image, ran: Iterable[tuple[int, int, int | None]], end: int) -> dict[Line, LineCycles]:
    """Return the cost of every line of the kernel, in the order of files and lines.

    Arguments:
        image: what ran.
        ran: of every record its address in HBM, the cycle in which it was issued, and that in which it retired, None if
            it did not.
        end: the cycle in which the run ended.
    """
    spans: dict[Line, list[tuple[int, int]]] = {}
    for address, issued, retired in ran:
        entry = image.entry(address)
        if entry.instruction.engine != Engine.QUEUE:
            spans.setdefault(entry.source.user, []).append((issued, end if retired is None else retired))
    return {line: LineCycles(_covered(spans[line]), len(spans[line])) for line in sorted(spans)}


def line_table(lines: Mapping[Line, LineCycles], cycles: int) -> dict[str, dict[str, object]]:
    """Return the costs as a table of a report; cycles: of the run."""
    return {
        str(line): {"cycles": cost.cycles, "share": f"{cost.cycles / max(cycles, 1):.1%}", "records": cost.records}
        for line, cost in lines.items()
    }


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """Return how many cycles spans cover together."""
    total, reached = 0, -1
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total
