"""A unit's tests, run by pytest on the unit's netlist, with one mutant after the other.

A test comes to the point at which it makes the simulator of the unit, having made its cases and asked golden for
results. There the process forks: a child for the sound netlist, or one for each mutant, goes on to the end of the test,
and what comes of the test there is its verdict on the mutant. So a test is set up once for all mutants.

A request, as JSON on the command line, names the unit's folder and what is to be done; the answer is a file in it.
"""

import json
import pickle
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from amaranth.hdl import Signal

from neuroncore_rtl.run.harness.player import PlayerDevice
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.campaign.mutation import played
from neuroncore_rtl.tb.campaign.mutation.children import Child, answer, fork_all
from neuroncore_rtl.tb.campaign.mutation.harnessed import Harnessed
from neuroncore_rtl.tb.campaign.mutation.library import Library
from neuroncore_rtl.tb.campaign.mutation.netlist import ports_of, rtlil_of
from neuroncore_rtl.tb.campaign.mutation.stand_in import CONTROLS, Endless, unit_stand_in
from neuroncore_rtl.tb.campaign.mutation.units import unit_named

__all__ = ["Request", "answer_request"]

_SLACK = 10
"""How many times as many cycles as the sound unit takes a mutant may take."""

_PATIENCE = 60.0
"""Seconds beyond `_SLACK` times those of the sound unit, behind which a mutant's test is given up as endless, too."""


@dataclass
class Request:
    """What a session is to do.

    Arguments:
        unit: its name, as of `unit_named`. folder: with its library.
        tests: those to be run, in this order, by pytest's names; empty for all of the unit's files.
        limits: of the tests, how many cycles they take, and seconds. mutants: numbers; none to run the sound netlist.
        workers: children at once.
    """

    unit: str
    folder: str
    tests: list[str] = field(default_factory=list)
    limits: dict[str, tuple[int, float]] = field(default_factory=dict)
    mutants: list[int] = field(default_factory=list)
    workers: int = 1


class _Session:
    """The plugin of pytest."""

    def __init__(self, request: Request):
        self.request = request
        folder = Path(request.folder)
        canonical = unit_named(request.unit).make()
        self.text, self.likeness = _placeless(canonical), _likeness(canonical)
        self.module = unit_named(request.unit).module
        if self.module:
            Harnessed(
                self.module, canonical, folder,
                known=bool(request.limits), met=self._fork,
                state=lambda: (self.mutant, self._limit() - self.cycles), ran=self._count, otherwise=self._leave,
            )  # fmt: skip
        else:
            ports = [*CONTROLS, *(port for port, _ in ports_of(canonical))]
            self.library = Library(folder / "module.so", ports)
        self.alive = list(request.mutants)
        self.verdicts: dict[str, dict[int, Child]] = {}
        self.test = ""
        self.pipe: int | None = None  # of a child, to the parent
        self.mutant = 0
        self.cycles = 0

    # What pytest calls

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        simulation = sys.modules.get("tests.hdl.simulation")
        if simulation is not None:
            self.amaranth, simulation.simulator_of = simulation.simulator_of, self.simulator_of
        for name, function in (("tests.hdl.arith.units", "run_device"), ("neuroncore_rtl.tb.check.comparison", "run")):
            if name in sys.modules:
                setattr(sys.modules[name], function, self.run_device)
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
            judge(True)  # what comes behind another unit is not judged
            raise
        except BaseException as error:
            kinds = {Endless: "endless", AssertionError: "differs", BaseException: "breaks"}
            judge(False, next(how for kind, how in kinds.items() if isinstance(error, kind)), _first_line(error))
            raise
        judge(True)
        return result

    # What the tests call

    def simulator_of(self, dut):
        component, resets = _bare(dut)
        if not self._is_unit(component):
            return self.amaranth(dut)
        simulator = unit_stand_in(component, self.library, self.mutant, self._limit(), resets)
        run = simulator.run

        def counted() -> None:
            try:
                run()
            finally:
                self._count(simulator._engine.edges)

        simulator.run = counted
        return simulator

    def run_device(self, device, work, **options):
        sound = isinstance(device, PlayerDevice) and device.mutate is None
        if not sound or not self._is_unit(played.inner_unit(device.unit)):
            pytest.skip("not this netlist")
        return played.play(device.unit, self.library, self.mutant, work.fields, work.bubbles)

    # How it goes on

    def _limit(self) -> int:
        return _SLACK * self.request.limits.get(self.test, (10**7, 0))[0] + 1000

    def _is_unit(self, component) -> bool:
        """Return whether a component is the unit; fork at the first one in a test, where the parent leaves it."""
        alike = not self.module and _likeness(component) == self.likeness
        if self.pipe is not None:
            return alike
        if not alike or _placeless(component) != self.text:
            self._leave()
        self._fork()
        return True

    def _leave(self) -> None:
        """Skip a test that simulates something else first."""
        if self.pipe is None:
            pytest.skip("another component")

    def _fork(self) -> None:
        """Go on in children only, a mutant each."""
        if self.pipe is not None:
            return
        patience = _SLACK * self.request.limits.get(self.test, (0, 1e4))[1] + _PATIENCE
        numbers = self.alive if self.request.limits else [0]
        found = fork_all(numbers, self.request.workers, patience, self._become)
        if found is not None:
            self.verdicts[self.test] = found
            self.alive = [number for number in self.alive if number not in found or found[number].passed]
            pytest.skip("done in children")

    def _count(self, cycles: int) -> None:
        self.cycles += cycles

    def _become(self, number: int, pipe: int) -> None:
        self.mutant, self.pipe = number, pipe


def _placeless(component) -> str:
    """Return the RTLIL of a component without the places in the sources; those of ports say who made the component."""
    return re.sub(r"^ *attribute \\src .*\n", "", rtlil_of(component), flags=re.MULTILINE)


def _likeness(component) -> tuple:
    """Return what tells components apart without their elaboration: class and plain parameters."""
    kinds = int | str | Config
    plain = {name: value for name, value in vars(component).items() if isinstance(value, kinds) and name[0] != "_"}
    return type(component), plain


def _bare(dut) -> tuple[object, list[Signal]]:
    """Return a component without what resets it from outside, and the signals that do."""
    resets = []
    while hasattr(dut, "_elaboratable_"):
        resets += [control for transform in dut._transforms_ for control in getattr(transform, "controls", {}).values()]
        dut = dut._elaboratable_
    return dut, resets


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160] if lines else ''}"


def run(request: Request) -> dict[str, dict[int, Child]]:
    """Run the tests of a request in this process, which is of no use behind it; return by test what became of it."""
    session = _Session(request)
    files = sorted({test.split("::")[0] for test in request.tests}) or list(unit_named(request.unit).tests)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "-rN", "-W", "ignore"]
    status = pytest.main([*options, *files], plugins=[session])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {status!r}")
    return session.verdicts


def answer_request(path: Path) -> None:
    """Do what a file asks for, and write the answer beside it."""
    request = Request(**json.loads(path.read_text()))
    path.with_suffix(".answer").write_bytes(pickle.dumps(run(request)))


if __name__ == "__main__":
    from neuroncore_rtl.tb.campaign.mutation import session

    session.answer_request(Path(sys.argv[1]))  # by its own name, lest the answer is one of __main__
