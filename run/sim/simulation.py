"""Builds of designs for a simulator, and runs of cocotb tests on them.

A build is cached under `sim_build/<simulator>/<top>-<hash>`. The hash covers everything that it depends on: Verilog,
options, C++ main and versions of the tools. The directory is made under another name, with a lock, and renamed when it
is finished, so several processes can request the same build. A truncated or overwritten program is built again.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import cocotb_tools.config
import find_libpython
from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim import clang, icarus, process, side_by_side, vectors, verilator
from neuroncore_rtl.run.sim.clock import TIMEOUT_VARIABLE
from neuroncore_rtl.run.sim.doctor import TOOLS, require
from neuroncore_rtl.run.sim.icarus import IcarusRunner
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.run.sim.parcels import note
from neuroncore_rtl.run.sim.process import CommandFailed, complaint, tail
from neuroncore_rtl.run.sim.seal import intact, seal, seal_of
from neuroncore_rtl.run.sim.shared import compile_shared
from neuroncore_rtl.run.sim.side_by_side import SideBySide
from neuroncore_rtl.run.sim.verilator import VerilatorRunner

__all__ = [
    "SIMULATORS", "TIMESCALE", "Build", "BuildFailed", "Design", "SimulationFailed", "TestResult", "build",
    "run_directory", "run_simulation",
]  # fmt: skip

PROGRAMS = {"verilator": verilator.EXECUTABLE, "icarus": icarus.ICARUS_PROGRAM}
"""Program of each simulator's build, relative to the build's directory."""

SIMULATORS = tuple(PROGRAMS)

TIMESCALE = ("1ns", "1ps")
"""Unit and precision of simulated time. Amaranth's Verilog specifies none, and Icarus's default is a second."""


class BuildFailed(RuntimeError):
    """The simulator refused the design; the message ends with its output."""


class SimulationFailed(RuntimeError):
    """A cocotb test failed, or the simulation ended without a report; the message ends with the tail of the log."""


@dataclass(frozen=True)
class Design:
    """Verilog design to simulate.

    Arguments:
        hier_blocks: modules that Verilator builds once as hierarchical blocks, because they have many instances.
        kept: modules that Verilator does not inline: code that works on a small part of the state is faster.
        public: top-level signals that tests read; empty: all top-level signals.
        clock: top-level input driven by Verilator's main program; None: the test drives the clock, as always with
            Icarus (see `run.sim.clock`).
        side_by_side: the one of `hier_blocks` that Verilator's main program evaluates, in parallel.
    """

    top: str
    verilog: str
    hier_blocks: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    clock: str | None = None
    side_by_side: SideBySide | None = None


@dataclass(frozen=True)
class Build:
    """Compiled design, ready to simulate, in a directory that includes its Verilog.

    Arguments:
        waves: whether its runs can record a waveform.
        fresh: whether this call made the build; False: it was cached.
        vectors: whether it calls vector libraries (`run.sim.vectors`).
        threads: number of threads that pay for them and for instances side by side.
    """

    directory: Path
    sim: str
    top: str
    waves: bool
    fresh: bool
    vectors: bool = False
    threads: int = 1


@dataclass(frozen=True)
class TestResult:
    """Result of one cocotb test."""

    __test__ = False  # keeps pytest from collecting it

    name: str
    passed: bool
    sim_time_ns: float
    message: str


def build(design: Design, sim: str = "verilator", *, waves: bool = False, root: Path = SIM_BUILD) -> Build:
    """Compile a design for one of `SIMULATORS`, or find its build below `root`; `waves`: able to record waveforms.

    Raises MissingTool if the simulator or its compiler is not installed, BuildFailed if one of them refuses the design.
    """
    if sim not in SIMULATORS:
        raise ValueError(f"SIM must be one of {', '.join(SIMULATORS)}, not {sim!r}")
    require("libpython", *(("make", "verilator") if sim == "verilator" else ("iverilog",)))

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
    libraries = vectors.compile_libraries(labels)  # the build may be from a machine of another level
    note(directory, *map(vectors.source_of, labels), *libraries, *map(seal_of, libraries))
    threads = vectors.paying_threads(design.verilog)
    if sim == "verilator" and design.side_by_side:
        threads = max(threads, design.side_by_side.instances)
    return Build(directory, sim, design.top, waves=waves, fresh=fresh, vectors=bool(labels), threads=threads)


def _fingerprint(design: Design, sim: str, waves: bool) -> str:
    parts = {
        **asdict(design),
        "waves": waves,
        "timescale": TIMESCALE,
        "cocotb": importlib.metadata.version("cocotb"),
        "runner": [Path(str(module.__file__)).read_text() for module in (process, verilator, clang, icarus)],
    }
    if sim == "verilator":
        parts["tool"] = _toolchain()
        mains = [verilator.MAIN if design.clock is None else verilator.CLOCKED_MAIN]
        if design.side_by_side:
            mains += [verilator.SIDE_BY_SIDE, vectors.POOL, Path(side_by_side.__file__)]
        parts["main"] = [main.read_text() for main in mains]
    else:
        parts["tool"] = TOOLS["iverilog"].locate()
    return _hash(parts)


def _toolchain() -> str:
    """Return a short hash that changes with Verilator, the compiler and `LIBRARY`, not with the project's path."""
    tool = verilator.find_verilator()
    assert tool is not None, "build() requires Verilator first"
    program = tool.program if tool.origin == "system" else verilator.LAUNCHER.read_text()
    return _hash((program, tool.version, clang.STANDARD_LIBRARY.name, verilator.LIBRARY.read_text()))


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _compile(design: Design, sim: str, waves: bool, directory: Path) -> None:
    """Compile a design into `directory` atomically; the caller holds its lock."""
    if sim == "verilator":
        require_packages("compilers")  # here, where Ctrl-C ends the wait, and not in a thread
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
        runner.side_by_side = design.side_by_side
        runner.everything_public = not design.public
        runner.toolchain = _toolchain()
        runner.libraries = vectors.library_paths(vectors.libraries_of(design.verilog))
    log = unfinished / "build.log"
    try:
        activity = f"build {sim} with waveform" if waves else f"build {sim}"
        doing = progress(f"{sim}: building {design.top}", activity, len(design.verilog))
        with doing, ThreadPoolExecutor(max_workers=1) as pool:
            # Libraries compile in parallel with Verilator.
            libraries = pool.submit(_compile_libraries, design, sim)
            if isinstance(runner, VerilatorRunner):
                runner.before_make = libraries.result
                pool.submit(
                    compile_shared, unfinished.parent, runner.toolchain, timescale=TIMESCALE, waves=runner.record_waves
                )
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
    runner.log.setLevel("CRITICAL")  # failures raise exceptions here
    runner.extra_environment = {"LIBPYTHON_LOC": cast(str, find_libpython.find_libpython())}
    return runner


@contextmanager
def run_directory(name: str, root: Path = SIM_BUILD) -> Iterator[Path]:
    """Create a directory for one run; remove it afterwards unless an exception is raised."""
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
    """Run the cocotb tests of a module on a build.

    Raises SimulationFailed if a test failed, none ran, or the simulator ended without a report.

    Arguments:
        built: from `build`; if it records waveforms, this run's is `run_dir/waves.vcd`.
        test_module: importable name of the module with the `@cocotb.test` functions.
        run_dir: working directory of this run only; gets `simulation.log` and `results.xml`.
        testcase: run only this test of the module.
        env: environment variables for the tests.
        plusargs: arguments for the simulator.
        timeout_ns: limit in simulated time, which tests read from `TIMEOUT_VARIABLE`; wall time is not limited.
        waves_levels: recorded levels of the hierarchy: 1 for the top level, 0 for all.
    """
    runner = _runner(built.sim)
    runner.record_waves = built.waves
    runner.waves_path = run_dir.resolve() / "waves.vcd"
    runner.waves_levels = waves_levels
    runner.extra_environment = {
        **runner.extra_environment,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "COCOTB_ANSI_OUTPUT": "0",
        "LD_LIBRARY_PATH": _library_path(built),
        vectors.THREADS_VARIABLE: str(vectors.threads_of(built.threads)),
        **({} if timeout_ns is None else {TIMEOUT_VARIABLE: str(timeout_ns)}),
        **(env or {}),
    }
    log = run_dir.resolve() / "simulation.log"
    results = run_dir.resolve() / "results.xml"
    status = 0
    try:
        # Under pytest, cocotb's runner exits if a test failed; the report is read in any case.
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
    """Return an LD_LIBRARY_PATH for the vector libraries and cocotb's, which may have moved since the build."""
    lanes = str(vectors.search_path()) if built.vectors else None
    return os.pathsep.join(filter(None, (str(cocotb_tools.config.libs_dir), lanes, os.environ.get("LD_LIBRARY_PATH"))))


def _read_results(results: Path, log: Path, status: int) -> list[TestResult]:
    """Return the results of a cocotb report; raise unless all tests passed."""
    if not results.is_file():
        raise SimulationFailed(f"the simulation ended with status {status} and no report ({log}):\n{tail(log)}")
    found = []
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        problem = next((child for child in case if child.tag in ("failure", "error")), None)
        duration = case.find("properties/property[@name='sim_time_duration']")
        time = 0.0 if duration is None else float(duration.attrib["value"])
        message = "" if problem is None else (problem.text or problem.get("message") or "").strip()
        found.append(TestResult(case.attrib["name"], passed=problem is None, sim_time_ns=time, message=message))
    failed = [result for result in found if not result.passed]
    if failed:
        messages = "\n".join(f"{result.name}: {result.message}" for result in failed)
        raise SimulationFailed(f"{len(failed)} of {len(found)} tests failed ({log}):\n{messages}")
    if not found or status:
        verdict = f"the simulation ended with status {status}" if status else "no test ran"
        raise SimulationFailed(f"{verdict} ({log}):\n{tail(log)}")
    return found
