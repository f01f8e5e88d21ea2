"""Parts that all of Verilator's programs share, compiled while Verilator reads the first design.

Verilator reads a core for 10 s, on one processor. The parts take as long on another: its run-time library, which
`native/objcache.sh` keeps, and what zig compiles for its first link (start-up code, unwinding of exceptions).
"""

import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from neuroncore_rtl.run.sim import clang
from neuroncore_rtl.run.sim.verilator import LIBRARY, MAKE_VARIABLES, VerilatorRunner

__all__ = ["compile_shared"]

_LINKER = f"LINK={clang.ZIG} c++ "

_LINK = next(one.removeprefix(_LINKER) for one in MAKE_VARIABLES if one.startswith(_LINKER))
"""Flags of a build's link; zig compiles its parts for each combination."""

_FAILURES = subprocess.CalledProcessError, clang.CompilerFailed


class _LibraryRunner(VerilatorRunner):
    """Builder of the run-time library alone."""

    clock = "clk"
    everything_public = True

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        return [verilate, [*make[:-1], f"{LIBRARY.stem}.o"]]

    def _execute_cmds(self, cmds, cwd, stdout=None) -> None:
        for command in cmds:  # in the process group of the terminal: Ctrl-C ends them
            null = subprocess.DEVNULL
            subprocess.run(command, cwd=cwd, env=self.env, stdin=null, stdout=stdout, stderr=stdout, check=True)


def compile_shared(folder: Path, toolchain: str, *, timescale: tuple[str, str], waves: bool) -> None:
    """Compile the shared parts for a design without contents, unless it was done before.

    A failure is ignored, because the build that needs the parts reports it.

    Arguments:
        folder: folder of Verilator's builds.
        toolchain: as `VerilatorRunner.toolchain`.
        timescale: unit and precision of simulated time.
        waves: whether programs can record waveforms, which they do with other options.
    """
    done = folder / f"runtime-{toolchain}" / ("shared-waves" if waves else "shared")
    if done.exists():
        return
    with TemporaryDirectory(prefix="shared-", dir=folder) as place, suppress(*_FAILURES):
        design, program = Path(place, "empty.v"), Path(place, "program.cpp")
        design.write_text("module empty(input wire clk); endmodule\n")
        program.write_text("int main() {}\n")
        runner = _LibraryRunner()
        runner.log.setLevel("CRITICAL")
        runner.record_waves = waves
        runner.toolchain = toolchain
        runner.build(
            sources=[design],
            hdl_toplevel="empty",
            always=True,
            build_dir=place,
            timescale=timescale,
            log_file=Path(place, "build.log"),
        )
        clang.compile_with(
            "c++", [*_LINK.split(), "-lunwind", "-pthread"], [program, clang.STANDARD_LIBRARY], Path(place, "program")
        )
        done.touch()
