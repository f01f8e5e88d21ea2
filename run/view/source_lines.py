"""Cycles by the kernel line that appended an instruction."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.source import Line, SourceLine
from neuroncore_rtl.run.report import Share
from neuroncore_rtl.spec.isa import Engine

__all__ = ["LineCycles", "costly_lines", "cycles_by_line", "line_table", "merge_spans", "short_code"]

LINES = 8  # most lines of `costly_lines`
CODE = 60  # most characters of a line's text in a table
_Key = TypeVar("_Key", Line, SourceLine)


class LineCycles(NamedTuple):
    """Cost of a kernel line: cycles and number of its executed instructions; cycles of parallel engines count once."""

    cycles: int
    records: int
    engines: tuple[Engine, ...]


def cycles_by_line(
    ran: Iterable[tuple[Entry, int, int | None]], end: int, line: Callable[[SourceLine], _Key]
) -> dict[_Key, LineCycles]:
    """Return the cost of each kernel line, in the order of the lines.

    `ran` has entry, issue cycle, and retire cycle or None, of every record; `end` is the last cycle of the run. `line`
    selects a line from an instruction's source: the user's, the library's, or both.
    """
    spans: dict[_Key, list[tuple[int, int]]] = {}
    engines: dict[_Key, set[Engine]] = {}
    for entry, issued, retired in ran:
        if entry.instruction.engine != Engine.QUEUE:
            spans.setdefault(line(entry.source), []).append((issued, end if retired is None else retired))
            engines.setdefault(line(entry.source), set()).add(entry.instruction.engine)
    cycles = {line: sum(end - begin for begin, end in merge_spans(own)) for line, own in spans.items()}
    return {one: LineCycles(cycles[one], len(spans[one]), tuple(sorted(engines[one]))) for one in sorted(spans)}


def costly_lines(lines: Mapping[Line, LineCycles]) -> dict[Line, LineCycles]:
    """Return the lines with the most cycles, in their order in the file."""
    largest = sorted(lines, key=lambda line: -lines[line].cycles)[:LINES]
    return {line: lines[line] for line in sorted(largest)}


def line_table(lines: Mapping[Line, LineCycles], cycles: int) -> list[dict[str, object]]:
    """Return the costs as a table for reports."""
    rows = []
    for line, cost in lines.items():
        engines = " ".join(engine.name.lower() for engine in cost.engines)
        figures = {"engine": engines, "cycles": cost.cycles, "share": Share(cost.cycles / max(cycles, 1))}
        rows.append({"line": str(line), **figures, "records": cost.records, "code": short_code(line)})
    return rows


def short_code(line: Line) -> str:
    """Return the text of a line, at most `CODE` characters."""
    return line.code if len(line.code) <= CODE else f"{line.code[: CODE - 3]}..."


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of intervals (first cycle, end) as disjoint intervals, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found
