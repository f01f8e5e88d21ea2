"""The row of a TEST: its variables, what its report says in numbers, and why it has failed."""

import re
from collections.abc import Iterator, Mapping

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.tb.campaign.task import FAILURE, Plain, Row

__all__ = ["row_of"]

_MEASURES = ("cycles", "ideal_cycles", "hbm_cycles", "utilisation", "compared", "mismatches", "bit_exact", "modelled")
"""Fields of a report that are columns under their own names."""

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def row_of(report: Report) -> Row:
    """Return the row of a report: variables in capitals, measures, then its further lines; what is nested has a dot in
    its name, such as `busy.tensor`, and a share is a number from 0 to 1."""
    row: Row = {"test": report.test}
    row |= {name: value if isinstance(value, Plain) else str(value) for name, value in report.settings.items()}
    row |= {name: getattr(report, name) for name in _MEASURES}
    row |= dict(_cells(report.extra))
    return row | {FAILURE: "; ".join(report.problems)}


def _cells(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Plain]]:
    for heading, value in values.items():
        name = prefix + heading.replace(" ", "_")
        if isinstance(value, Mapping):
            yield from _cells(value, f"{name}.")
        elif isinstance(value, str):
            share = _SHARE.fullmatch(value)
            yield name, round(float(share[1]) / 100, 6) if share else value
        else:
            yield name, value if isinstance(value, Plain) else str(value)
