"""Rows of TESTs and their numbers: measures, their ratios to a baseline, and statistics over seeds.

The row of a TEST has its variables, the numbers of its report, and the reason of a failure.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import SEED, unknown
from neuroncore_rtl.tb.campaign.task import CURVES, FAILURE, Plain, Row, Status

__all__ = [
    "ALWAYS", "Spread", "aligned_lines", "check_measures", "combination_of", "combinations", "ratio_name", "row_of",
    "shown_measures", "spread_of", "statistics_of", "with_ratios",
]  # fmt: skip

_MEASURES = ("cycles", "ideal_cycles", "hbm_cycles", "utilisation", "compared", "mismatches", "bit_exact", "modelled")

ALWAYS = ("cycles", "utilisation")
"""Measures of every TEST that has them."""

MOST = 6
"""Most further measures that are shown unless the sweep names its measures."""

_RECORD = {
    "key", "seconds", "hbm_cycles", "ideal_cycles", "compared", "mismatches", "simulated_cycles_per_second", "records",
}  # fmt: skip
_ACTIVITY = re.compile(r"(.*_)?(busy|waits|config|core|dma_bytes|queues|conflicts|controller|counters)|cycles_of_.*")
"""Report headings about the machine and its activity; a summary has them only if the sweep names them."""


@dataclass(frozen=True)
class Spread:
    """Statistics of a measure over `runs` runs; `deviation`: standard deviation of the sample, None for one run."""

    runs: int
    mean: float
    deviation: float | None
    least: float
    most: float


def spread_of(values: Iterable[float | None]) -> Spread | None:
    """Return the statistics of the values that are not None; None without such values."""
    own = [value for value in values if value is not None]
    if not own:
        return None
    return Spread(len(own), mean(own), stdev(own) if len(own) > 1 else None, min(own), max(own))


def combinations(rows: Iterable[Row], swept: Sequence[str]) -> dict[tuple, list[Row]]:
    """Return the rows of each combination of the `swept` variables; rows that differ only in SEED are together."""
    found: dict[tuple, list[Row]] = defaultdict(list)
    for row in rows:
        found[combination_of(row, swept)].append(row)
    return dict(found)


def combination_of(row: Row, swept: Sequence[str]) -> tuple:
    """Return the row's TEST and the values of its `swept` variables except SEED."""
    return row.get("test"), *(row.get(name) for name in swept if name != SEED.name)


def check_measures(rows: Sequence[Row], chosen: Sequence[str]) -> None:
    """Raise UsageError if rows have numbers, but none with a name in `chosen`."""
    numbers = _numbers(rows)
    for name in chosen:
        if numbers and not any(_is_below(column, name) for column in numbers):
            raise unknown("a name in measures", name, numbers)


def shown_measures(rows: Sequence[Row], chosen: Sequence[str]) -> list[str]:
    """Return the columns of the measures of one TEST.

    Arguments:
        rows: rows of the TEST.
        chosen: names; "loss" stands for "loss.sr.last_quarter" and all others below it. Empty: the first `MOST` columns
            of numbers that vary, except those of the machine's activity and of the lines of a table.
    """
    numbers = _numbers(rows)
    always = [name for name in ALWAYS if name in numbers]
    if not chosen:
        varying = [name for name in numbers if name not in always and _is_own(name) and len(_values(rows, name)) > 1]
        return always + varying[:MOST]
    own = [column for name in chosen for column in numbers if _is_below(column, name)]
    return list(dict.fromkeys(always + own))


def _numbers(rows: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row if name != CURVES)
    return [name for name in names if _is_measure(rows, name)]


def _is_measure(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column is a measure: it has numbers, and its name is not in capitals, as a variable's is."""
    values = _values(rows, name)
    return not name.isupper() and bool(values) and all(type(value) in (int, float) for value in values)


def _values(rows: Sequence[Row], name: str) -> set:
    return {row[name] for row in rows if row.get(name) is not None and row["status"] != Status.BROKEN}


def _is_own(name: str) -> bool:
    parts = name.split(".")
    return name not in _RECORD and not _ACTIVITY.fullmatch(parts[0]) and not any(part.isdecimal() for part in parts)


def _is_below(column: str, name: str) -> bool:
    return column == name or column.startswith(f"{name}.")


def ratio_name(measure: str) -> str:
    """Return the column of the ratio of a measure to its baseline."""
    return f"{measure}_ratio"


def with_ratios(rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str], baseline: Mapping) -> list[Row]:
    """Return the rows of one TEST with a ratio of each measure to the row of the baseline with the same SEED.

    The ratio is None where either value is missing or the baseline's is 0. `baseline`: values of variables; the row to
    compare with has these, and the same values of the other `swept` variables.
    """
    own = {(*combination_of(row, swept), row.get(SEED.name)): row for row in rows if row["status"] != Status.BROKEN}
    found = []
    for row in rows:
        base = own.get((*combination_of({**row, **baseline}, swept), row.get(SEED.name)), {})
        ratios = {ratio_name(name): _ratio(row.get(name), base.get(name)) for name in measures}
        found.append({**row, **ratios})
    return found


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def statistics_of(rows: Sequence[Row], swept: Sequence[str], measures: Sequence[str]) -> list[Row]:
    """Return a row for each combination and measure: runs, mean, deviation, min and max, and the mean ratio if any."""
    found = []
    names = [name for name in swept if name != SEED.name]
    for (test, *values), own in combinations(rows, swept).items():
        usable = [row for row in own if row["status"] != Status.BROKEN]
        for measure in measures:
            spread = spread_of(row.get(measure) for row in usable)
            if spread is None:
                continue
            numbers = {"mean": spread.mean, "deviation": spread.deviation, "min": spread.least, "max": spread.most}
            ratio = spread_of(row.get(ratio_name(measure)) for row in usable)
            row = {"test": test, **dict(zip(names, values, strict=True)), "measure": measure, "runs": spread.runs}
            found.append({**row, **numbers, "ratio": ratio and ratio.mean})
    return found


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
