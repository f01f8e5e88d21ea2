"""Test session of a unit: pytest runs the unit's tests on its mutants.

A test first makes its cases and the golden results, then the unit's simulator. When it makes the simulator, the process
forks: a child for the sound (unchanged) netlist, or a child per mutant, continues to the end of the test. The child's
result is the verdict on its mutant.

A request is a JSON file named on the command line; the answer is a file in the same folder.
"""

import contextlib
import json
import os
import pickle
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from amaranth.hdl import Signal

from neuroncore_rtl.run.harness.player import PlayedUnit, PlayerDevice
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.campaign.mutation.harnessed import Harnessed
from neuroncore_rtl.tb.campaign.mutation.library import MutantModel
from neuroncore_rtl.tb.campaign.mutation.netlist import ports_of, rtlil_of
from neuroncore_rtl.tb.campaign.mutation.stand_in import CONTROLS, Endless, play, unit_stand_in
from neuroncore_rtl.tb.campaign.mutation.units import unit_named

__all__ = ["Child", "Request", "answer_request"]

_SLACK = 10  # cycles of a mutant's test, as a multiple of the sound unit's
_PATIENCE = 60.0  # seconds, in addition, until a mutant's test counts as endless


@dataclass(frozen=True)
class Child:
    """Result of a test in a child process.

    `how` a test failed is "differs" (an assertion), "endless", or "breaks" (another exception). "lost" counts as
    passed: the process ended without a result.
    """

    passed: bool
    how: str
    says: str
    cycles: int
    seconds: float


def answer(pipe: int, child: Child) -> None:
    """Send the result of this child process and end it."""
    try:
        os.write(pipe, pickle.dumps(child))
    finally:
        os._exit(0)  # even if the parent has closed the pipe


def fork_all(
    numbers: list[int], workers: int, patience: float, become: Callable[[int, int], None]
) -> dict[int, Child] | None:
    """Fork a child per mutant's number; each child calls `become` and returns None, the parent returns the results."""
    found: dict[int, Child] = {}
    todo, running = list(reversed(numbers)), {}
    while todo or running:
        while todo and len(running) < workers:
            number = todo.pop()
            ours, theirs = os.pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)  # so that its own processes can be killed with it
                os.close(ours)
                for other, *_ in running.values():
                    os.close(other)
                become(number, theirs)
                return None
            os.close(theirs)
            running[number] = (ours, pid, time.monotonic())
        readable, _, _ = select.select([pipe for pipe, *_ in running.values()], [], [], 1.0)
        for number, (pipe, pid, since) in list(running.items()):
            late = time.monotonic() - since > patience
            if pipe not in readable and not late:
                continue
            with open(pipe, "rb") as file:
                said = b"" if late and pipe not in readable else file.read()
            if not said:
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError):
                        kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            since = time.monotonic() - since
            endless = Child(False, "endless", "given up", 0, since)
            found[number] = pickle.loads(said) if said else endless if late else Child(True, "lost", "", 0, since)
            del running[number]
    return found


@dataclass
class Request:
    """Work of a session in a folder with the unit's library.

    Tests are pytest names in the order of their runs; empty: all tests in the unit's files. `limits` has, by test, the
    sound unit's cycles and seconds. Without `mutants` the tests run on the sound netlist.
    """

    unit: str
    folder: str
    tests: list[str] = field(default_factory=list)
    limits: dict[str, tuple[int, float]] = field(default_factory=dict)
    mutants: list[int] = field(default_factory=list)
    workers: int = 1


class _Session:
    def __init__(self, request: Request):
        self.request = request
        folder = Path(request.folder)
        canonical = unit_named(request.unit).make()
        self.text, self.likeness = _placeless(canonical), _likeness(canonical)
        self.module = unit_named(request.unit).module
        if self.module:
            Harnessed(self, canonical, folder)
        else:
            ports = [*CONTROLS, *(port for port, _ in ports_of(canonical))]
            self.model = partial(MutantModel, folder / "module.so", ports)
        self.alive = list(request.mutants)
        self.verdicts: dict[str, dict[int, Child]] = {}
        self.test = ""
        self.pipe: int | None = None
        self.mutant = 0
        self.cycles = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        simulation = sys.modules.get("tests.hdl.simulation")
        if simulation is not None:
            self.amaranth, simulation.simulator_of = simulation.simulator_of, self.simulator_of
        if units := sys.modules.get("tests.hdl.arith.units"):
            units.run_device = self.run_device
        order = {name: place for place, name in enumerate(self.request.tests)}
        if order:
            items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.test, self.cycles = item.nodeid, 0
        started = time.perf_counter()

        def judge(passed: bool, how: str = "", says: str = "") -> None:
            if self.pipe is not None:
                answer(self.pipe, Child(passed, how, says, self.cycles, time.perf_counter() - started))

        try:
            result = yield
        except pytest.skip.Exception:
            judge(True)  # the part of a test after another unit does not count
            raise
        except BaseException as error:
            kinds = {Endless: "endless", AssertionError: "differs", BaseException: "breaks"}
            judge(False, next(how for kind, how in kinds.items() if isinstance(error, kind)), _first_line(error))
            raise
        judge(True)
        return result

    def simulator_of(self, dut):
        component, resets = _bare(dut)
        if not self._is_unit(component):
            return self.amaranth(dut)
        simulator = unit_stand_in(component, self.model(self.mutant), self.limit, resets)
        run = simulator.run

        def run_and_count() -> None:
            try:
                run()
            finally:
                self.cycles += simulator._engine.edges

        simulator.run = run_and_count
        return simulator

    def run_device(self, device, work, **options):
        unit = device.unit if isinstance(device, PlayerDevice) and device.mutate is None else None
        if unit is None or not self._is_unit(unit.unit if isinstance(unit, PlayedUnit) else unit):
            pytest.skip("not this netlist")
        return play(device.unit, self.model(self.mutant), work.fields, work.bubbles)

    @property
    def limit(self) -> int:
        return _SLACK * self.request.limits.get(self.test, (10**7, 0))[0] + 1000

    def _is_unit(self, component) -> bool:
        """Fork and end the test in the parent if the first component of a test is the unit; otherwise skip the test."""
        alike = not self.module and _likeness(component) == self.likeness
        if self.pipe is not None:
            return alike
        if not alike or _placeless(component) != self.text:
            self.skip_other()
        self.fork()
        return True

    def skip_other(self) -> None:
        if self.pipe is None:
            pytest.skip("another component")

    def fork(self) -> None:
        """Fork a child per mutant, which continues the test; the parent skips the rest of the test."""
        if self.pipe is not None:
            return
        patience = _SLACK * self.request.limits.get(self.test, (0, 1e4))[1] + _PATIENCE
        numbers = self.alive if self.request.limits else [0]
        found = fork_all(numbers, self.request.workers, patience, self._become)
        if found is not None:
            self.verdicts[self.test] = found
            self.alive = [number for number in self.alive if number not in found or found[number].passed]
            pytest.skip("done in children")

    def _become(self, number: int, pipe: int) -> None:
        self.mutant, self.pipe = number, pipe


def _placeless(component) -> str:
    """Return the RTLIL of a component without source lines, as a port's source line depends on the caller."""
    return re.sub(r"^ *attribute \\src .*\n", "", rtlil_of(component), flags=re.MULTILINE)


def _likeness(component) -> tuple:
    """Return a component's class and its parameters of simple types, to compare components without elaboration."""
    kinds = int | str | Config
    plain = {name: value for name, value in vars(component).items() if isinstance(value, kinds) and name[0] != "_"}
    return type(component), plain


def _bare(dut) -> tuple[object, list[Signal]]:
    """Return the component inside its `ResetInserter` wrappers, and the reset signals of these."""
    resets = []
    while hasattr(dut, "_elaboratable_"):
        resets += [control for transform in dut._transforms_ for control in getattr(transform, "controls", {}).values()]
        dut = dut._elaboratable_
    return dut, resets


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160] if lines else ''}"


def answer_request(path: Path) -> None:
    """Run the tests of the request in a file and write the answer into its folder, once per process."""
    request = Request(**json.loads(path.read_text()))
    session = _Session(request)
    files = sorted({test.split("::")[0] for test in request.tests}) or list(unit_named(request.unit).tests)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "-rN", "-W", "ignore"]
    status = pytest.main([*options, *files], plugins=[session])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {status!r}")
    path.with_suffix(".answer").write_bytes(pickle.dumps(session.verdicts))


if __name__ == "__main__":
    from neuroncore_rtl.tb.campaign.mutation import session

    session.answer_request(Path(sys.argv[1]))  # pickled classes must not belong to __main__
