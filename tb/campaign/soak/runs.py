"""Soak runs as campaign tasks."""

import itertools
import json
from collections.abc import Iterator

from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.tb.campaign.soak.shrink import Shrinking, shrink
from neuroncore_rtl.tb.campaign.task import FAILURE, Row, Task, key_of, sources
from neuroncore_rtl.tb.tests.soak.case import Case, CaseKind, Verdict
from neuroncore_rtl.tb.tests.soak.draw import drawn_case, machine_number, subject_of

__all__ = ["CASE", "COVERED", "judge_case", "soak_case", "soak_tasks"]

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
