"""Campaign task: a function that returns a row, and a hash (key) of everything the row depends on."""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from neuroncore_rtl import IN_CLONE, ROOT, SIM_BUILD
from neuroncore_rtl.run.monitor import Ongoing, watched
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.sim.parcels import noted

__all__ = [
    "BUILDS", "CURVES", "FAILURE", "Plain", "Row", "Status", "Task", "WorkerDied", "WorkersLost", "broken_row",
    "key_of", "perform", "sources",
]  # fmt: skip

Plain = str | int | float | bool | None
"""Type of a cell of a row; a float is finite."""

Row = dict[str, Any]
"""Plain values by column, and in the column `CURVES` the values of all steps, by quantity and name of the curve."""

CURVES = "curves"

FAILURE = "failure"
"""Column of the reason of a failure; empty or absent if the run has passed."""

BUILDS = "builds"
"""Column with the builds that a run generated, as paths relative to `sim_build/`."""

_SOURCES = ("spec", "hdl", "golden", "kernels", "run", "frontends", "tb")
_NO_SOURCES = ("tb/cli", "tb/campaign", "run/view")
"""Folders that affect no result: they start, distribute and display runs."""


class Status:
    """Values of the column `status`."""

    PASSED = "passed"
    FAILED = "failed"
    """The function gives a reason in `FAILURE`; this is a result."""
    BROKEN = "broken"
    """No result: the task raised an exception or killed its worker. The next campaign runs it again."""


class WorkerDied(RuntimeError):
    """Workers ended abnormally in one task, one after the other; `alone`: no other task can be the reason."""

    def __init__(self, message: str, workers: int = 1, *, alone: bool = True):
        super().__init__(message)
        self.workers, self.alone = workers, alone


class WorkersLost(RuntimeError):
    """All workers have ended or cannot be reached."""


@dataclass(frozen=True)
class Task:
    """One run of a campaign.

    `label`, of letters, digits, dots and dashes, names the run's folder; `key` is a hash from `key_of`. The function,
    importable by name, returns a row, with the reason in the column `FAILURE` if the run has failed; its arguments are
    picklable. Tasks of one `group` share a build, so one runs before the others start.
    """

    label: str
    key: str
    function: Callable[..., Mapping[str, Plain]]
    arguments: tuple = ()
    group: str = ""

    @property
    def folder(self) -> str:
        return f"{self.label}-{self.key[:8]}"


def key_of(*parts: object) -> str:
    """Return a key over JSON values, such as `sources`, settings and a seed."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def sources() -> str:
    """Return a hash of everything that affects results: design, golden model, software, benches, package versions."""
    found = hashlib.sha256(_packages())
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and "__pycache__" not in name and not name.startswith(_NO_SOURCES):
                found.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()[:32]


def _packages() -> bytes:
    """Return the names and versions of packages: those of the lock file, in an installed package all installed ones."""
    if IN_CLONE:
        return (ROOT / "requirements.lock").read_bytes()
    return "\n".join(sorted(f"{one.name}=={one.version}" for one in importlib.metadata.distributions())).encode()


def perform(task: Task, runs: str) -> Row:
    """Run a task in this process and return its row; its folder is in `runs`, relative to `sim_build/` or absolute."""
    started = time.monotonic()
    try:
        folder = SIM_BUILD / runs / task.folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with (folder / "log").open("w", buffering=1) as log:
            with recording_in(folder), noted() as builds, watched(Ongoing(task.label)):
                row = _logged(task, log) | {BUILDS: " ".join(sorted(builds))}
    except OSError as error:
        row = broken_row(task, error)
    return row | {"seconds": round(time.monotonic() - started, 3), "worker": f"{platform.node()}:{os.getpid()}"}


def _logged(task: Task, log) -> Row:
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            row = dict(task.function(*task.arguments))
            _check(row)
        except (Exception, SystemExit) as error:
            traceback.print_exc(file=log)
            return broken_row(task, error)
    status = Status.FAILED if row.get(FAILURE) else Status.PASSED
    return {"key": task.key, "label": task.label, "status": status, FAILURE: "", **row}


def _check(row: Row) -> None:
    for name, value in row.items():
        if name != CURVES and not isinstance(value, Plain):
            raise TypeError(f"a cell of a row must be a plain value, not {name} of type {type(value).__name__}")
    json.dumps(row, allow_nan=False)


def broken_row(task: Task, error: BaseException) -> Row:
    """Return the row of a task without a result."""
    said = str(error).strip().splitlines()
    kind = type(error).__name__
    sentence = said[0] if said else kind
    return {"key": task.key, "label": task.label, "status": Status.BROKEN, FAILURE: sentence, "raised": kind}
