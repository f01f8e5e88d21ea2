# amaranth: UnusedElaboratable=no

"""Mutation campaign of a unit: draw mutants, run the unit's tests on each, prove undetected mutants equivalent."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.tb.campaign.mutation.equivalence import EquivalenceProof, prove_equivalent
from neuroncore_rtl.tb.campaign.mutation.library import compile_mutants
from neuroncore_rtl.tb.campaign.mutation.netlist import Mutant, mutants_of, ports_of, rtlil_of
from neuroncore_rtl.tb.campaign.mutation.session import Child, Request
from neuroncore_rtl.tb.campaign.mutation.stand_in import CONTROLS
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, add_watcher
from neuroncore_rtl.tb.campaign.mutation.units import unit_named

__all__ = ["TestsFailed", "mutate"]

FOLDER = SIM_BUILD / "mutation"


class TestsFailed(RuntimeError):
    """A unit's tests fail on its unchanged netlist, or no test simulates the unit."""

    __test__ = False


@dataclass(frozen=True)
class Outcome:
    """Result of a unit's campaign of at most `asked` mutants.

    `tests` has the results of the unchanged unit, in the order in which the tests run. `caught` has the test that
    detected a mutant, `proofs` the proofs of the undetected ones.
    """

    unit: str
    asked: int
    seed: int
    mutants: Mapping[int, Mutant]
    tests: Mapping[str, Child]
    caught: Mapping[int, tuple[str, Child]]
    proofs: Mapping[int, EquivalenceProof]
    seconds: float

    @property
    def holes(self) -> list[Mutant]:
        return [self.mutants[number] for number, proof in self.proofs.items() if not proof.finding.equal]

    @property
    def score(self) -> float:
        """Share of detected mutants among the mutants that are not equivalent; 1 if all mutants are equivalent."""
        counted = len(self.caught) + len(self.holes)
        return len(self.caught) / counted if counted else 1.0

    def as_json(self) -> dict[str, object]:
        return {
            "unit": self.unit,
            "seed": self.seed,
            "asked": self.asked,
            "mutants": len(self.mutants),
            "caught": {
                test: {how: sum(by == test and child.how == how for by, child in self.caught.values())
                       for how in ("differs", "endless", "breaks")}
                for test in self.tests
            },
            "equal": {number: [proof.finding.value, proof.cycles]
                      for number, proof in self.proofs.items() if proof.finding.equal},
            "holes": [
                {"mutant": str(hole), **asdict(hole), "finding": self.proofs[hole.number].finding.value,
                 "cycle": self.proofs[hole.number].cycles}
                for hole in self.holes
            ],
            "score": self.score,
            "seconds": round(self.seconds, 1),
            "tests": {name: asdict(child) for name, child in self.tests.items()},
        }  # fmt: skip


def mutate(name: str, count: int, seed: int, workers: int, only: Collection[str] | None = None) -> Outcome:
    """Draw mutants, or those in `only`, test them, prove the others; TestsFailed if the sound unit fails."""
    started, unit, folder = time.monotonic(), unit_named(name), FOLDER / f"{name.replace(':', '-')}-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with progress(f"{name}: building"):
            component = unit.make()
            drawn = mutants_of(rtlil_of(component, unit.means), count, seed, folder, unit.part, unit.without)
            mutants = {mutant.number: mutant for mutant in drawn}
            if only is not None:
                mutants = {number: mutant for number, mutant in mutants.items() if str(mutant) in only}
            if not unit.module:
                compile_mutants("mutants.v", [*CONTROLS, *(port for port, _ in ports_of(component))], folder)
        with progress(f"{name}: tests of the sound unit"):
            tests = _sound_tests(name, folder)
        limits = {test: (child.cycles, child.seconds) for test, child in tests.items()}
        request = Request(name, str(folder), list(tests), limits, list(mutants), workers)
        with progress(f"{name}: {len(mutants)} mutants"):
            answer = _run_session(request, folder)
        caught = {number: (test, child) for test, found in answer.items() for number, child in found.items()
                  if not child.passed}  # fmt: skip
        survivors = [mutant for number, mutant in mutants.items() if number not in caught]
        with progress(f"{name}: {len(survivors)} proofs"):
            watch = partial(add_watcher, component=component, legal=unit.legal) if unit.legal else str
            promise = partial(_add_promises, unit=unit)
            asked = prove_equivalent(survivors, unit.cycles, folder, workers, unit.part, watch, unit.whole, promise)
            proofs = {mutant.number: proof for mutant, proof in asked}
    finally:
        shutil.rmtree(folder)
    return Outcome(name, count, seed, mutants, tests, caught, proofs, time.monotonic() - started)


def _add_promises(prepared: str, unit: Unit) -> str:
    for part, (make, promise) in unit.promises.items():
        prepared = add_watcher(prepared, make(), promise, part)
    return prepared


def _sound_tests(name: str, folder: Path) -> dict[str, Child]:
    """Return the tests that pass on the sound (unchanged) netlist, in the order in which mutants run them.

    The fastest test is first. In a harness the test with the most cycles is first: starting a run takes more time than
    its cycles, and a long test detects more mutants.
    """
    children = {test: found[0] for test, found in _run_session(Request(name, str(folder)), folder).items()}
    failed = {test: child for test, child in children.items() if child.how}
    if failed:
        test, child = next(iter(failed.items()))
        says = child.says or "its process ended"
        raise TestsFailed(f"{test} must pass on the unchanged netlist of {name}, but fails: {says}")
    if not children:
        said = (folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
        where = ", ".join(unit_named(name).tests)
        raise TestsFailed(f"a test in {where} must simulate {name} as its entry in MUTATED_UNITS makes it: {said}")
    in_harness = bool(unit_named(name).module)
    return dict(sorted(children.items(), key=lambda item: -item[1].cycles if in_harness else item[1].seconds))


def _run_session(request: Request, folder: Path) -> dict[str, dict[int, Child]]:
    path = folder / "request.json"
    path.write_text(json.dumps(asdict(request)))
    command = [sys.executable, "-m", f"{__package__}.session", path]
    log = folder / "log"
    with log.open("w") as file:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        raise TestsFailed(f"the tests of {request.unit} cannot be run:\n{log.read_text()[-2000:]}")
    return pickle.loads(path.with_suffix(".answer").read_bytes())
