"""Build a design for a simulator once, and run cocotb tests on it as often as wanted.

A build is cached under `sim_build/<simulator>/<top>-<hash>`, where the hash covers everything the result depends on:
the Verilog, the options, the C++ main and the versions of the tools. It is made in a directory of another name that is
renamed when finished, under a lock, so that any number of processes may ask for the same build at the same time. A
program that is not as it was built, because it was cut short or overwritten, is built again.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import cocotb_tools.config
import find_libpython
from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim import clang, icarus, process, vectors, verilator
from neuroncore_rtl.run.sim.clock import TIMEOUT_VARIABLE
from neuroncore_rtl.run.sim.doctor import TOOLS, require
from neuroncore_rtl.run.sim.icarus import IcarusRunner
from neuroncore_rtl.run.sim.parcels import note
from neuroncore_rtl.run.sim.process import CommandFailed, complaint, tail
from neuroncore_rtl.run.sim.seal import intact, seal, seal_of
from neuroncore_rtl.run.sim.verilator import VerilatorRunner

__all__ = [
    "SIMULATORS", "TIMESCALE", "Build", "BuildFailed", "Design", "SimulationFailed", "TestResult", "build",
    "run_directory", "run_simulation",
]  # fmt: skip

PROGRAMS = {"verilator": verilator.EXECUTABLE, "icarus": icarus.ICARUS_PROGRAM}
"""What a simulator builds, a file of the build's directory."""

SIMULATORS = tuple(PROGRAMS)

TIMESCALE = ("1ns", "1ps")
"""Unit and precision of simulated time; Amaranth's Verilog names none, and Icarus would take seconds."""


class BuildFailed(RuntimeError):
    """The simulator refused the design; the message ends with what it said."""


class SimulationFailed(RuntimeError):
    """A cocotb test failed, or the simulation ended before it reported; the message ends with the tail of the log."""


@dataclass(frozen=True)
class Design:
    """Verilog to be simulated.

    Arguments:
        top: name of the top-level module.
        verilog: text of all modules.
        hier_blocks: modules that Verilator builds once, apart, because they are instantiated many times.
        kept: modules whose instances Verilator keeps apart instead of merging them into what is around
            them: code that works on a small part of the state at a time is the faster one.
        public: top-level signals that tests read; if empty, they may touch all of them.
        clock: the top-level input that Verilator's main program drives; None leaves the clock to the test, as Icarus
            does in any case (see `run.sim.clock`).
    """

    top: str
    verilog: str
    hier_blocks: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    clock: str | None = None


@dataclass(frozen=True)
class Build:
    """A design that is ready to run.

    Arguments:
        directory: where it is; holds the Verilog that it was made from, too.
        sim: the simulator.
        top: name of the top-level module.
        waves: whether it can record a waveform.
        fresh: whether this call made it, rather than finding it finished.
        vectors: whether it calls libraries of this machine's level (`run.sim.vectors`).
    """

    directory: Path
    sim: str
    top: str
    waves: bool
    fresh: bool
    vectors: bool = False


@dataclass(frozen=True)
class TestResult:
    """What became of one cocotb test: its name, whether it passed, its simulated time in nanoseconds, its message."""

    __test__ = False  # pytest would collect it for its name

    name: str
    passed: bool
    sim_time_ns: float
    message: str


def build(design: Design, sim: str = "verilator", *, waves: bool = False, root: Path = SIM_BUILD) -> Build:
    """Compile `design` for a simulator, or find it compiled.

    Arguments:
        design: what to compile.
        sim: one of `SIMULATORS`.
        waves: whether the result must be able to record waveforms.
        root: where generated files go.

    Raises:
        MissingTool: if the simulator or its compiler is not installed.
        BuildFailed: if the simulator or the compiler refuses the design.
    """
    if sim not in SIMULATORS:
        raise ValueError(f"SIM must be one of {', '.join(SIMULATORS)}, not {sim!r}")
    require("libpython", *(("make", "zig", "verilator") if sim == "verilator" else ("iverilog",)))

    directory = root / sim / f"{design.top}-{_fingerprint(design, sim, waves)}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    fresh = False
    if not intact(directory / PROGRAMS[sim]):
        with FileLock(directory.with_name(f"{directory.name}.lock")):
            if not intact(directory / PROGRAMS[sim]):
                shutil.rmtree(directory, ignore_errors=True)
                _compile(design, sim, waves, directory)
                fresh = True
    labels = vectors.libraries_of(design.verilog)
    libraries = vectors.compile_libraries(labels)  # of this machine's level, if the build is another machine's
    note(directory, *map(vectors.source_of, labels), *libraries, *map(seal_of, libraries))
    return Build(directory=directory, sim=sim, top=design.top, waves=waves, fresh=fresh, vectors=bool(labels))


def _fingerprint(design: Design, sim: str, waves: bool) -> str:
    """Return a short hash of everything that a build depends on."""
    parts = {
        "top": design.top,
        "verilog": design.verilog,
        "hier_blocks": design.hier_blocks,
        "kept": design.kept,
        "public": design.public,
        "clock": design.clock,
        "waves": waves,
        "timescale": TIMESCALE,
        "cocotb": importlib.metadata.version("cocotb"),
        "runner": [Path(str(module.__file__)).read_text() for module in (process, verilator, clang, icarus)],
    }
    if sim == "verilator":
        parts["tool"] = _toolchain()
        parts["main"] = (verilator.MAIN if design.clock is None else verilator.CLOCKED_MAIN).read_text()
    else:
        parts["tool"] = TOOLS["iverilog"].locate()
    return _hash(parts)


def _toolchain() -> str:
    """Return a short hash of which Verilator and which compiler are used, wherever the project lies."""
    tool = verilator.find_verilator()
    assert tool is not None, "build() requires Verilator before"
    program = tool.program if tool.origin == "system" else verilator.LAUNCHER.read_text()
    return _hash((program, tool.version, clang.STANDARD_LIBRARY.name))


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _compile(design: Design, sim: str, waves: bool, directory: Path) -> None:
    """Compile `design` so that `directory` appears at once and whole. The caller holds its lock."""
    unfinished = directory.with_name(f"{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    sources = [unfinished / f"{design.top}.v"]
    sources[0].write_text(design.verilog)
    controls = [
        *(f'hier_block -module "{module}"' for module in design.hier_blocks),
        *(f'no_inline -module "{module}"' for module in design.kept),
        *(f'public_flat_rd -module "{design.top}" -var "{signal}"' for signal in design.public),
    ]
    if controls and sim == "verilator":
        sources.insert(0, unfinished / "control.vlt")
        sources[0].write_text("\n".join(["`verilator_config", *controls, ""]))

    runner = _runner(sim)
    runner.record_waves = waves
    if isinstance(runner, VerilatorRunner):
        runner.hierarchical = bool(design.hier_blocks)
        runner.clock = design.clock
        runner.everything_public = not design.public
        runner.toolchain = _toolchain()
        runner.libraries = vectors.library_paths(vectors.libraries_of(design.verilog))
    log = unfinished / "build.log"
    try:
        with progress(f"{sim}: building {design.top}"), ThreadPoolExecutor(max_workers=1) as pool:
            # What the program is linked with, beside Verilator.
            libraries = pool.submit(_compile_libraries, design, sim)
            if isinstance(runner, VerilatorRunner):
                runner.before_make = libraries.result
            runner.build(
                sources=sources,
                hdl_toplevel=design.top,
                always=True,
                build_dir=unfinished,
                timescale=TIMESCALE,
                log_file=log,
            )
    except clang.CompilerFailed as error:
        raise BuildFailed(str(error)) from error
    except CommandFailed as error:
        raise BuildFailed(f"{sim} cannot build {design.top} ({log}):\n{complaint(log)}") from error
    for pattern in ("**/*.o", "**/*.a", "**/*.gch"):
        for intermediate in unfinished.glob(pattern):
            intermediate.unlink()
    shutil.rmtree(unfinished / verilator.COMPILER_CACHE, ignore_errors=True)
    seal(unfinished / PROGRAMS[sim])
    unfinished.rename(directory)


def _compile_libraries(design: Design, sim: str) -> None:
    if sim == "verilator":
        clang.prepare()
    vectors.compile_libraries(vectors.libraries_of(design.verilog))


def _runner(sim: str) -> VerilatorRunner | IcarusRunner:
    runner = VerilatorRunner() if sim == "verilator" else IcarusRunner()
    runner.log.setLevel("CRITICAL")  # its failures become exceptions here
    runner.extra_environment = {"LIBPYTHON_LOC": cast(str, find_libpython.find_libpython())}
    return runner


@contextmanager
def run_directory(name: str, root: Path = SIM_BUILD) -> Iterator[Path]:
    """Give a new directory for one run; it is removed afterwards, unless an exception passes through."""
    (root / "runs").mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root / "runs"))
    yield directory
    shutil.rmtree(directory)


def run_simulation(
    built: Build,
    test_module: str,
    *,
    run_dir: Path,
    testcase: str | None = None,
    env: Mapping[str, str] | None = None,
    plusargs: Sequence[str] = (),
    timeout_ns: int | None = None,
    waves_levels: int = 0,
) -> list[TestResult]:
    """Run the cocotb tests of a module on a finished build.

    Arguments:
        built: from `build`; if it records waveforms, this run's is `run_dir/waves.vcd`.
        test_module: importable name of the module with the `@cocotb.test` functions.
        run_dir: working directory of the simulation, for this run alone (see `run_directory`); gets `simulation.log`
            and `results.xml`.
        testcase: run only this test of the module.
        env: environment variables for the tests.
        plusargs: arguments for the simulator.
        timeout_ns: limit in simulated time. The tests find it in the environment as `TIMEOUT_VARIABLE` and set it
            as their `timeout_time`; wall time decides nothing.
        waves_levels: levels of the hierarchy in the waveform, 1 for the top level alone, 0 for all.

    Raises:
        SimulationFailed: if a test failed, none ran, or the simulator ended without a report.
    """
    runner = _runner(built.sim)
    runner.record_waves = built.waves
    runner.waves_path = run_dir.resolve() / "waves.vcd"
    runner.waves_levels = waves_levels
    runner.extra_environment = {
        **runner.extra_environment,
        "PYTHONPATH": _python_path(),
        "COCOTB_ANSI_OUTPUT": "0",
        "LD_LIBRARY_PATH": _library_path(built),
        **({} if timeout_ns is None else {TIMEOUT_VARIABLE: str(timeout_ns)}),
        **(env or {}),
    }
    log = run_dir.resolve() / "simulation.log"
    results = run_dir.resolve() / "results.xml"
    status = 0
    try:
        # Under pytest cocotb's runner exits for a failed test; the report is read here in any case.
        with suppress(SystemExit):
            runner.test(
                test_module=test_module,
                testcase=testcase,
                hdl_toplevel=built.top,
                hdl_toplevel_lang="verilog",
                build_dir=built.directory,
                test_dir=run_dir,
                plusargs=list(plusargs),
                results_xml=str(results),
                log_file=log,
            )
    except CommandFailed as error:
        status = error.status
    return _read_results(results, log, status)


def _library_path(built: Build) -> str:
    """Return an LD_LIBRARY_PATH under which the simulation finds cocotb, though it may have been built elsewhere, its
    lanes, and what it found before.
    """
    lanes = str(vectors.search_path()) if built.vectors else None
    return os.pathsep.join(filter(None, (str(cocotb_tools.config.libs_dir), lanes, os.environ.get("LD_LIBRARY_PATH"))))


def _python_path() -> str:
    """Return a PYTHONPATH under which the simulator's Python imports what this one does."""
    return os.pathsep.join(place for place in sys.path if place)


def _read_results(results: Path, log: Path, status: int) -> list[TestResult]:
    """Return the outcome of every test in a report of cocotb's; raise unless all passed."""
    if not results.is_file():
        raise SimulationFailed(f"the simulation ended with status {status} and no report ({log}):\n{tail(log)}")
    found = []
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        problem = next((child for child in case if child.tag in ("failure", "error")), None)
        duration = case.find("properties/property[@name='sim_time_duration']")
        found.append(
            TestResult(
                name=case.attrib["name"],
                passed=problem is None,
                sim_time_ns=0.0 if duration is None else float(duration.attrib["value"]),
                message="" if problem is None else (problem.text or problem.get("message") or "").strip(),
            )
        )
    failed = [result for result in found if not result.passed]
    if failed:
        messages = "\n".join(f"{result.name}: {result.message}" for result in failed)
        raise SimulationFailed(f"{len(failed)} of {len(found)} tests failed ({log}):\n{messages}")
    if not found or status:
        verdict = f"the simulation ended with status {status}" if status else "no test ran"
        raise SimulationFailed(f"{verdict} ({log}):\n{tail(log)}")
    return found
