"""Runs of a soak as tasks of a campaign: a case is drawn, run, and cut down if it fails; its row has what it covers,
and the case itself if it has failed."""

import json
from collections.abc import Iterator

from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.tb.campaign.soak.shrink import Shrinking, shrunk
from neuroncore_rtl.tb.campaign.task import FAILURE, Row, Task, key_of, sources
from neuroncore_rtl.tb.tests.soak.case import Case, CaseKind, Verdict
from neuroncore_rtl.tb.tests.soak.draw import drawn_case, machine_number, subject_of

__all__ = ["CASE", "COVERED", "judged", "soaked", "soaks"]

CASE = "case"
"""Column of the case that a failure was cut down to, as its file has it."""

COVERED = "covered"
"""Column of what a case has: JSON of how often, by `dimension:value`."""

BUILDS = 6
"""Machines that are built to find a plainer one on which a case fails, too."""


def judged(case: Case) -> Verdict:
    """Return what came of a case; a simulation that breaks off is a failure of the case.

    Raises:
        ValueError: if there can be no such program.
    """
    try:
        return case.judge()
    except SimulationFailed as error:
        said = str(error).strip().splitlines()
        kind = CaseKind.HANG if "did not finish" in str(error) else CaseKind.BROKEN_OFF
        return Verdict(kind=kind, compared=0, cycles=0, failures=tuple(said[:3]))


def soaked(seed: int, index: int, tries: int) -> Row:
    """Run the case of an index, and return its row.

    Arguments:
        seed, index: decide the case.
        tries: runs in which a failure may be cut down.
    """
    case = drawn_case(seed, index)
    print(f"seed {seed}, index {index}: {case.subject}, {case.size:,} instructions")
    print("\n".join(case.lines()))
    verdict = judged(case)
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
    shrinking = Shrinking(lambda one: judged(one).kind == verdict.kind, tries, BUILDS)
    small = shrunk(case, shrinking)
    said = judged(small)
    if said.kind != verdict.kind:
        # It fails by what is not in the case: told as it was found.
        small, said = case, verdict
        print("the case does not fail again")
    print("\n".join((f"after {shrinking.tried} tries:", *small.lines(), *said.failures)))
    sentence = f"{said.kind}: {said.failures[0] if said.failures else 'golden has it otherwise'}"
    found = {"tries": shrinking.tried, "left": small.size, CASE: small.text, "program": "\n".join(small.lines())}
    return row | {FAILURE: sentence} | found


def soaks(seed: int, tries: int) -> Iterator[Task]:
    """Yield the tasks of a seed, without an end."""
    index = 0
    while True:
        group = machine_number(index)
        key = key_of(sources(), "soak", seed, index)
        yield Task(f"{index:06d}-{subject_of(index)}", key, soaked, (seed, index, tries), f"machine {group}")
        index += 1
