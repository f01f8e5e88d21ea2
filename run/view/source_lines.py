"""Cycles by the kernel line that appended an instruction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.source import Line
from neuroncore_rtl.run.report import Share
from neuroncore_rtl.spec.isa import Engine

__all__ = ["LineCycles", "cycles_by_line", "line_table"]


@dataclass(frozen=True)
class LineCycles:
    """Cost of a kernel line: cycles and number of its executed instructions; cycles of parallel engines count once."""

    cycles: int
    records: int


def cycles_by_line(image: Image, ran: Iterable[tuple[int, int, int | None]], end: int) -> dict[Line, LineCycles]:
    """Return the cost of each kernel line; `ran`: (address, issue cycle, retire cycle or None) of every record."""
    spans: dict[Line, list[tuple[int, int]]] = {}
    for address, issued, retired in ran:
        entry = image.entry(address)
        if entry.instruction.engine != Engine.QUEUE:
            spans.setdefault(entry.source.user, []).append((issued, end if retired is None else retired))
    return {line: LineCycles(_covered(spans[line]), len(spans[line])) for line in sorted(spans)}


def line_table(lines: Mapping[Line, LineCycles], cycles: int) -> list[dict[str, object]]:
    """Return the costs as a table for reports."""
    return [
        {
            "line": str(line),
            "cycles": cost.cycles,
            "share": Share(cost.cycles / max(cycles, 1)),
            "records": cost.records,
        }
        for line, cost in lines.items()
    ]


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    total, reached = 0, -1
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total
