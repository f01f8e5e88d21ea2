# amaranth: UnusedElaboratable=no

"""One unit's campaign: mutants, the tests of the unit on each of them, and proofs of those that no test catches."""

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
from neuroncore_rtl.tb.campaign.mutation.children import Child
from neuroncore_rtl.tb.campaign.mutation.equivalence import EquivalenceProof, prove_equivalent
from neuroncore_rtl.tb.campaign.mutation.legal import watched
from neuroncore_rtl.tb.campaign.mutation.library import compile_mutants
from neuroncore_rtl.tb.campaign.mutation.netlist import Mutant, mutants_of, ports_of, rtlil_of
from neuroncore_rtl.tb.campaign.mutation.session import Request
from neuroncore_rtl.tb.campaign.mutation.stand_in import CONTROLS
from neuroncore_rtl.tb.campaign.mutation.unit import Unit
from neuroncore_rtl.tb.campaign.mutation.units import unit_named

__all__ = ["TestsFailed", "mutate"]

FOLDER = SIM_BUILD / "mutation"


class TestsFailed(RuntimeError):
    """A unit's own tests do not pass on its netlist, or there are none; the message says which."""

    __test__ = False


@dataclass(frozen=True)
class Outcome:
    """What became of a unit's mutants.

    Arguments:
        unit, asked, seed: which ones; asked is how many at most.
        mutants: all of them, by number.
        tests: that have to catch them, the fastest first, each with the cycles and seconds of the sound unit.
        caught: by number the test that did, and what became of it.
        proofs: of those that were not.
        seconds: that it took.
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
        """Those that are neither caught nor equal."""
        return [self.mutants[number] for number, proof in self.proofs.items() if not proof.finding.equal]

    @property
    def score(self) -> float:
        """Share of caught ones among those that are not equal; 1 if all are."""
        counted = len(self.caught) + len(self.holes)
        return len(self.caught) / counted if counted else 1.0

    def as_json(self) -> dict[str, object]:
        """Return all of it for the record."""
        holes = {mutant.number: self.proofs[mutant.number] for mutant in self.holes}
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
                {"mutant": str(self.mutants[number]), **asdict(self.mutants[number]), "finding": proof.finding.value,
                 "cycle": proof.cycles}
                for number, proof in holes.items()
            ],
            "score": self.score,
            "seconds": round(self.seconds, 1),
            "tests": {name: asdict(child) for name, child in self.tests.items()},
        }  # fmt: skip


def mutate(name: str, count: int, seed: int, workers: int, only: Collection[str] | None = None) -> Outcome:
    """Make mutants of a unit, and judge them.

    Arguments:
        name: of the unit, as of `unit_named`. count: mutants at most. seed: of their draw.
        workers: processes at once.
        only: those to judge, as text; None for all.

    Raises:
        TestsFailed: see there.
        RuntimeError: a tool fails; the message is its own.
    """
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
            tests = _sound(name, folder)
        limits = {test: (child.cycles, child.seconds) for test, child in tests.items()}
        request = Request(name, str(folder), list(tests), limits, list(mutants), workers)
        with progress(f"{name}: {len(mutants)} mutants"):
            answer = _asked(request, folder)
        caught = {number: (test, child) for test, found in answer.items() for number, child in found.items()
                  if not child.passed}  # fmt: skip
        survivors = [mutant for number, mutant in mutants.items() if number not in caught]
        with progress(f"{name}: {len(survivors)} proofs"):
            watch = partial(watched, component=component, legal=unit.legal) if unit.legal else str
            promise = partial(_promised, unit=unit)
            asked = prove_equivalent(survivors, unit.cycles, folder, workers, unit.part, watch, unit.whole, promise)
            proofs = {mutant.number: proof for mutant, proof in asked}
    finally:
        shutil.rmtree(folder)
    return Outcome(name, count, seed, mutants, tests, caught, proofs, time.monotonic() - started)


def _promised(prepared: str, unit: Unit) -> str:
    """Return a unit's netlist with what its submodules promise."""
    for part, (make, promise) in unit.promises.items():
        prepared = watched(prepared, make(), promise, part)
    return prepared


def _sound(name: str, folder: Path) -> dict[str, Child]:
    """Return the tests that pass on the sound netlist, the fastest first; in a harness, where a run's start costs more
    than its cycles, the longest first."""
    answer = _asked(Request(name, str(folder)), folder)
    children = {test: found[0] for test, found in answer.items()}
    failed = {test: child for test, child in children.items() if child.how}
    if failed:
        test, child = next(iter(failed.items()))
        says = child.says or "its process ended"
        raise TestsFailed(f"tests must pass on the netlist of {name}, {test} does not: {says}")
    if not children:
        said = (folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
        raise TestsFailed(f"tests of {name} must simulate it with the parameters of its table, none in "
                          f"{', '.join(unit_named(name).tests)} does: {said}")  # fmt: skip
    in_harness = bool(unit_named(name).module)
    order = (lambda child: -child.cycles) if in_harness else (lambda child: child.seconds)
    return dict(sorted(children.items(), key=lambda item: order(item[1])))


def _asked(request: Request, folder: Path) -> dict[str, dict[int, Child]]:
    path = folder / "request.json"
    path.write_text(json.dumps(asdict(request)))
    command = [sys.executable, "-m", f"{__package__}.session", path]
    log = folder / "log"
    with log.open("w") as file:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        raise TestsFailed(f"the tests of {request.unit} cannot be run:\n{log.read_text()[-2000:]}")
    return pickle.loads(path.with_suffix(".answer").read_bytes())
