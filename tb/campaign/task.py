"""A task of a campaign: a function with arguments whose result is a row, and a key of what the row depends on."""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.sim.parcels import noted

__all__ = [
    "BUILDS", "FAILURE", "Plain", "Row", "Status", "Task", "WorkerDied", "WorkersLost", "broken", "key_of", "perform",
    "sources",
]  # fmt: skip

Plain = str | int | float | bool | None
"""What a cell of a row may be; a float is finite."""

Row = dict[str, Plain]

FAILURE = "failure"
"""Column in which a function says in a sentence why its run has failed; empty, or absent, if it has not."""

BUILDS = "builds"
"""Column of what a run needed that was generated, by names from `sim_build/` on, with blanks between."""

_SOURCES = ("spec", "hdl", "golden", "kernels", "run", "frontends", "tb")
_NO_SOURCES = ("tb/cli", "tb/campaign", "run/view")
"""Folders on which no result depends: who starts it, who hands it out, and who draws it."""


class Status:
    """What has become of a task: words of the column `status`."""

    PASSED = "passed"
    FAILED = "failed"
    """The function says so in `FAILURE`: a result, which is known."""
    BROKEN = "broken"
    """There is no result: it raised, or killed its worker. The next campaign runs it again."""


class WorkerDied(RuntimeError):
    """The process that ran a task has ended without a result.

    Arguments:
        workers: so many of them, one after the other.
        alone: none of them had another task that could have done it.
    """

    def __init__(self, message: str, workers: int = 1, *, alone: bool = True):
        super().__init__(message)
        self.workers, self.alone = workers, alone


class WorkersLost(RuntimeError):
    """All workers are gone, whatever they did."""


@dataclass(frozen=True)
class Task:
    """One run.

    Arguments:
        label: names it to people, and its folder: letters, digits, dots, dashes.
        key: of all that its row depends on, from :func:`key_of`.
        function: importable by its name; returns a row, whose column `FAILURE` has the reason if the run has failed.
        arguments: that it is called with; they can be pickled.
        group: tasks of one group share a build: one of them runs first, the others when that has ended; empty: none.
    """

    label: str
    key: str
    function: Callable[..., Mapping[str, Plain]]
    arguments: tuple = ()
    group: str = ""

    @property
    def folder(self) -> str:
        """Name of the folder of its run."""
        return f"{self.label}-{self.key[:8]}"


def key_of(*parts: object) -> str:
    """Return a key of JSON values: whatever a row depends on, such as :func:`sources`, settings and a seed."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def sources() -> str:
    """Return a hash of the sources that results depend on: the design, its golden model, its software, its benches, and
    the versions of the packages."""
    found = hashlib.sha256((ROOT / "requirements.lock").read_bytes())
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and "__pycache__" not in name and not name.startswith(_NO_SOURCES):
                found.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()[:32]


def perform(task: Task, runs: str) -> Row:
    """Run a task in this process, and return its row; what it prints is `log` in its folder, where it records, too.

    Arguments:
        task: the task.
        runs: folder in which each run has one of its own; from `sim_build/` on, unless it is absolute.
    """
    started = time.monotonic()
    try:
        folder = SIM_BUILD / runs / task.folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with (folder / "log").open("w", buffering=1) as log:
            with recording_in(folder), noted() as builds:
                row = _logged(task, log) | {BUILDS: " ".join(sorted(builds))}
    except OSError as error:
        row = broken(task, error)
    return row | {"seconds": round(time.monotonic() - started, 3), "worker": f"{platform.node()}:{os.getpid()}"}


def _logged(task: Task, log) -> Row:
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            row = dict(task.function(*task.arguments))
            _check(row)
        except (Exception, SystemExit) as error:
            traceback.print_exc(file=log)
            return broken(task, error)
    status = Status.FAILED if row.get(FAILURE) else Status.PASSED
    return {"key": task.key, "label": task.label, "status": status, FAILURE: "", **row}


def _check(row: Row) -> None:
    for name, value in row.items():
        if not isinstance(value, Plain):
            raise TypeError(f"a cell of a row must be a plain value, not {name} of type {type(value).__name__}")
    json.dumps(row, allow_nan=False)


def broken(task: Task, error: BaseException) -> Row:
    """Return the row of a task that has no result."""
    said = str(error).strip().splitlines()
    kind = type(error).__name__
    sentence = said[0] if said else kind
    return {"key": task.key, "label": task.label, "status": Status.BROKEN, FAILURE: sentence, "raised": kind}
