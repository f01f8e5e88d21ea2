"""Process part of a simulator's runner: environment, log, and termination."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from cocotb_tools.runner import Runner

from neuroncore_rtl.run.sim.paths import plain_path

__all__ = ["CommandFailed", "SimulatorProcess", "complaint", "tail"]

INHERITED_FROM_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GNUMAKEFLAGS")
"""Variables that would pass an outer `make M=8` to Verilator's inner `make`, where M has another meaning."""

TAIL_LINES = 40


class CommandFailed(RuntimeError):
    """A program failed; `log` is the path of its output."""

    def __init__(self, command: Sequence[str], status: int, log: Path):
        super().__init__(f"{Path(command[0]).name} ended with status {status}")
        self.status = status
        self.log = log


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log; empty if it is missing."""
    if not log.is_file():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def complaint(log: Path, lines: int = TAIL_LINES) -> str:
    """Return at most `lines` lines of a build log: from its first error or warning on, otherwise the last lines."""
    text = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for number, line in enumerate(text):
        if line.startswith(("%Error", "%Warning")) or "error:" in line:
            return "\n".join(text[number : number + lines])
    return tail(log, lines)


_WATCH = 'read -r ended || kill -s KILL -- "-$1"'
"""Shell command that reads a line. If its input closes without one, this process has died, so it kills the group."""


@contextmanager
def _watched(group: int) -> Iterator[None]:
    """Ensure that a process group is killed if this process dies in this context, even by SIGKILL."""
    watch = ["sh", "-c", _WATCH, "watch", str(group)]
    nowhere: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(watch, stdin=subprocess.PIPE, process_group=0, **nowhere) as watcher:
        try:
            yield
        finally:
            assert watcher.stdin is not None
            watcher.stdin.write(b"ended\n")


class SimulatorProcess(Runner):
    """Mixin for cocotb's runners: each command runs in its process group, which is killed if this process dies.

    Attributes:
        record_waves: record a waveform, regardless of the environment variable WAVES.
        waves_levels: recorded levels of the hierarchy: 1 for the top level, 0 for all.
        extra_environment: variables that override inherited ones.
    """

    record_waves: bool = False
    waves_path: Path = Path("waves.vcd")
    waves_levels: int = 0
    extra_environment: Mapping[str, str] = {}

    def _set_env_common(self) -> None:
        super()._set_env_common()
        for name in INHERITED_FROM_MAKE:
            self.env.pop(name, None)
        self.env.update(self.extra_environment)

    def _readable(self, text: str) -> str:
        return plain_path(text, self.build_dir.parent.parent)

    def _execute_cmds(self, cmds, cwd, stdout=None) -> None:
        for command in cmds:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            try:
                with _watched(process.pid):
                    status = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            if status:
                raise CommandFailed(command, status, Path(cast(str | Path, self.log_file)))
