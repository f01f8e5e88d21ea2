"""The row of a TEST: its variables, the numbers of its report, and the reason of a failure."""

import math
from collections.abc import Iterator, Mapping, Sequence

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.tb.campaign.task import CURVES, FAILURE, Plain, Row

__all__ = ["aligned_lines", "row_of"]

_MEASURES = ("cycles", "ideal_cycles", "hbm_cycles", "utilisation", "compared", "mismatches", "bit_exact", "modelled")


def row_of(report: Report) -> Row:
    """Return a report as a row.

    A nested heading gets a dot, as does the name of a row of a nested table; a number that is not finite becomes None.
    """
    row: Row = {"test": report.test}
    row |= {name: value if isinstance(value, Plain) else str(value) for name, value in report.settings.items()}
    row |= {name: getattr(report, name) for name in _MEASURES}
    row |= dict(_cells(report.rows))
    row |= {CURVES: _finite_curves(report)} if report.curves else {}
    return row | {FAILURE: "; ".join(report.problems)}


def _finite_curves(report: Report) -> dict[str, dict[str, list[float | None]]]:
    return {
        quantity: {name: [_finite(value) for value in values] for name, values in own.items()}
        for quantity, own in report.curves.items()
    }


def _finite(value: Plain) -> Plain:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def _cells(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Plain]]:
    for heading, value in values.items():
        name = prefix + heading.replace(" ", "_")
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            value = {str(first): dict(row) for (_, first), *row in (row.items() for row in value)}
        if isinstance(value, Mapping):
            yield from _cells(value, f"{name}.")
        else:
            yield name, _finite(value) if isinstance(value, Plain) else str(value)


def aligned_lines(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines of right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        yield "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
