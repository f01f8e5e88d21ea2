"""Soak runs as campaign tasks, and their coverage.

Coverage has, by dimension, such as opcode or format, the count of each value, and the values that did not occur.
"""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.campaign.soak.shrink import Shrinking, shrink
from neuroncore_rtl.tb.campaign.task import FAILURE, Row, Task, key_of, sources
from neuroncore_rtl.tb.tests.soak.case import Case, CaseKind, Verdict
from neuroncore_rtl.tb.tests.soak.draw import drawn_case, machine_number, subject_of

__all__ = ["CASE", "COVERED", "coverage", "coverage_table", "judge_case", "soak_case", "soak_tasks"]

CASE = "case"
"""Column of the shrunk case."""

COVERED = "covered"
"""Column of the coverage, JSON with a count per `dimension:value`."""

BUILDS = 6  # simpler machines that may be built for a failing case


def judge_case(case: Case) -> Verdict:
    """Return the verdict of a case; an aborted simulation is a failure."""
    try:
        return case.judge()
    except SimulationFailed as error:
        said = str(error).strip().splitlines()
        kind = CaseKind.HANG if "did not finish" in str(error) else CaseKind.BROKEN_OFF
        return Verdict(kind=kind, compared=0, cycles=0, failures=tuple(said[:3]))


def soak_case(seed: int, index: int, tries: int) -> Row:
    """Run the case of an index; if it fails, shrink it within `tries` runs."""
    case = drawn_case(seed, index)
    print(f"seed {seed}, index {index}: {case.subject}, {case.size:,} instructions")
    print("\n".join(case.lines()))
    verdict = judge_case(case)
    row = {
        "test": case.subject,
        "index": index,
        "instructions": case.size,
        "cycles": verdict.cycles,
        "compared": verdict.compared,
        COVERED: json.dumps(case.covers()),
    }
    if verdict.kind == CaseKind.NONE:
        return row
    print("\n".join((verdict.kind, *verdict.failures)))
    shrinking = Shrinking(lambda one: judge_case(one).kind == verdict.kind, tries, BUILDS)
    small = shrink(case, shrinking)
    said = judge_case(small)
    if said.kind != verdict.kind:
        # The failure depends on something outside the case: report the case as drawn.
        small, said = case, verdict
        print("the case does not fail again")
    print("\n".join((f"after {shrinking.tried} tries:", *small.lines(), *said.failures)))
    sentence = f"{said.kind}: {said.failures[0] if said.failures else 'golden differs'}"
    found = {"tries": shrinking.tried, "left": small.size, CASE: small.text, "program": "\n".join(small.lines())}
    return row | {FAILURE: sentence} | found


def soak_tasks(seed: int, tries: int) -> Iterator[Task]:
    """Yield a task for each case of a seed, without an end."""
    for index in itertools.count():
        key = key_of(sources(), "soak", seed, index)
        group = f"machine {machine_number(index)}"
        yield Task(f"{index:06d}-{subject_of(index)}", key, soak_case, (seed, index, tries), group)


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
