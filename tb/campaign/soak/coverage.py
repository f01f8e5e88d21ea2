"""Coverage of a soak: per dimension, such as opcode or format, the count of each value, and the missing values."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.campaign.soak.runs import COVERED
from neuroncore_rtl.tb.campaign.task import Row

__all__ = ["coverage", "coverage_table"]


def expected_values() -> dict[str, set[str]]:
    """Return the values that a soak should cover."""
    opcodes = {opcode.name.lower() for opcode in isa.Opcode} | {"load_stationary", "multiply_moving", "dma_copy"}
    kinds = {kind.name.lower() for kind in CollectiveKind}
    units = {name: {"0", "1"} for name, span in Config.RANGES.items() if span == (0, 1)}
    return {
        "engine": {"tensor", "vector", "scalar", "dma", "collective", "controller"},
        "opcode": opcodes | kinds,
        "collective": kinds,
        "function": set(FUNCTIONS),
        "alu": {operation.name.lower() for operation in isa.AluOp},
        "format": set(FORMATS),
        "stall": {"HBM gap", "HBM rate", "HBM stall", "HBM reorder", "HBM interleave", "streams some", "buses some"},
        "topology": {"ring", "torus"},
        **units,
    }


def coverage(rows: Iterable[Row]) -> dict[str, Counter[str]]:
    """Return the count of each value, by dimension."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for label, count in json.loads(row.get(COVERED) or "{}").items():
            dimension, _, value = label.partition(":")
            found[dimension][value] += count
    return dict(found)


def coverage_table(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Return a line per dimension; values that did not occur follow `never`."""
    found, wanted = coverage(rows), expected_values()
    lines = []
    for dimension in sorted({*found, *wanted}, key=lambda name: (name not in wanted, name)):
        counts = found.get(dimension, Counter())
        missing = sorted(wanted.get(dimension, set()) - set(counts))
        never = f"; never {', '.join(missing)}" if missing else ""
        lines.append((dimension.replace("_", " "), _format_counts(counts) + never))
    return lines


def _format_counts(counts: Mapping[str, int]) -> str:
    def order(value: str) -> tuple[bool, float, str]:
        number = value.replace(".", "", 1).isdecimal()
        return (not number, float(value) if number else 0.0, value)

    return ", ".join(f"{value} {counts[value]:,}" for value in sorted(counts, key=order))
