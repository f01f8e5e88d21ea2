"""Records of what a process is doing, for `make top` and other programs.

While an activity lasts, `sim_build/monitor/<pid>.jsonl` gets a line every `PERIOD` seconds, a report in the JSON format
of AWS's neuron-monitor with the additional group `progress`. The process locks the file, so the file of a dead process
is known; the file is removed when the last activity ends.
"""

import fcntl
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.estimates import Forecast
from neuroncore_rtl.run.resident import most_resident

__all__ = ["Ongoing", "live_records", "watched"]

FOLDER = SIM_BUILD / "monitor"

PERIOD = 1.0
"""Seconds between two lines."""

MOST_BYTES = 4 << 20
"""Size of a file at which it starts again from its next line."""


@dataclass(eq=False)
class Ongoing:
    """Something that takes long.

    Arguments:
        text: the activity, for the reader.
        started: `time.monotonic()` of its start.
        estimate: expected seconds in total, None if not known; the forecast of `done` replaces it.
        done: returns the part of the work that is done, 0 to 1; 0 while it is not known. Another thread calls it.
        show: called with each forecast, in seconds.
        runs: returns the numbers of runs that passed and that did not.
        machine: the simulated machine, a `run.harness.live.LiveRun`.
    """

    text: str
    started: float = field(default_factory=time.monotonic)
    estimate: float | None = None
    done: Callable[[], float] | None = None
    show: Callable[[float], object] | None = None
    runs: Callable[[], tuple[int, int]] | None = None
    machine: Any = None
    part: float = 0.0
    _forecast: Forecast = field(default_factory=Forecast)

    def look(self) -> None:
        """Update the machine, the part that is done, and the estimate."""
        if self.machine is not None:
            self.machine.look()
        if self.done is not None:
            self.part = self.done()
            if found := self._forecast.look(time.monotonic() - self.started, self.part):
                self.estimate = found
                if self.show is not None:
                    self.show(found)


_ACTIVITIES: list[Ongoing] = []
_LOCK = Lock()


@contextmanager
def watched(activity: Ongoing) -> Iterator[None]:
    """Record an activity while it lasts; one thread of the process does so for all."""
    with _LOCK:
        _ACTIVITIES.append(activity)
        if len(_ACTIVITIES) == 1:
            _Writer.current = _Writer()
    try:
        yield
    finally:
        with _LOCK:
            _ACTIVITIES.remove(activity)
            if not _ACTIVITIES and _Writer.current is not None:
                _Writer.current.end()


class _Writer:
    """The thread that writes the records of this process, from the start of its first activity."""

    current: "_Writer | None" = None

    def __init__(self):
        self._ended, self._thread = Event(), Thread(target=self._write, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        file: IO[str] | None = None
        try:
            while not self._ended.wait(PERIOD):
                activities = tuple(_ACTIVITIES)
                for activity in activities:
                    activity.look()
                if not activities:  # the last one is ending
                    break
                with suppress(OSError):  # a full disk must not end a run
                    file = file or _locked_file()
                    if file.tell() > MOST_BYTES:
                        file.truncate(0)
                    file.write(json.dumps(_report(activities)) + "\n")
                    file.flush()
        finally:
            if file is not None:
                Path(file.name).unlink(missing_ok=True)
                file.close()


def _locked_file() -> IO[str]:
    """Return this process's file, locked; remove the files of dead processes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.jsonl"):
        if not _has_writer(path):
            path.unlink(missing_ok=True)
    file = (FOLDER / f"{os.getpid()}.jsonl").open("a")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _has_writer(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def live_records() -> list[dict[str, Any]]:
    """Return the last report of each process that lives, by its number."""
    found = []
    for path in FOLDER.glob("*.jsonl"):
        if _has_writer(path):
            with suppress(OSError, IndexError, ValueError):  # it has just begun or ended
                found.append(json.loads(path.read_text().splitlines()[-1]))
    return sorted(found, key=lambda record: record["neuron_runtime_data"][0]["pid"])


def _report(activities: tuple[Ongoing, ...]) -> dict[str, Any]:
    """Return the report of activities, the outermost first."""
    inner, elapsed = activities[-1], time.monotonic() - activities[-1].started

    def group(**values: object) -> dict[str, object]:
        return {"period": round(elapsed, 3), **values, "error": ""}

    told: dict[str, object] = {"activities": [one.text for one in activities], "part": round(inner.part, 4) or None}
    told |= {"estimate": inner.estimate, "cycles": None, "cycles_per_second": None}
    host, cores, in_use = most_resident(), {}, {}
    if (machine := inner.machine) is not None:
        told |= {"cycles": machine.cycles, "cycles_per_second": round(machine.cycles_per_second, 1)}
        host, cores = host + machine.host_bytes, machine.core_bytes
        for core, (whole, engines) in machine.utilisation().items():
            shares = {name: _percent(share) for name, share in engines.items()}
            in_use[str(core)] = {"neuroncore_utilization": _percent(whole), "engines": shares}
    breakdown = {
        "host": {"application_memory": host, "constants": 0, "dma_buffers": 0, "tensors": 0},
        "neuroncore_memory_usage": {str(core): _NO_MEMORY | {"tensors": size} for core, size in cores.items()},
    }
    memory = {"host": host, "neuron_device": sum(cores.values()), "usage_breakdown": breakdown}
    report = {
        "neuroncore_counters": group(neuroncores_in_use=in_use),
        "memory_used": group(neuron_runtime_used_bytes=memory, loaded_models=[]),
        "progress": group(**told),
    }
    for passed, wrong in (one.runs() for one in activities if one.runs is not None):
        report["execution_stats"] = group(execution_summary={"completed": passed, "completed_with_err": wrong})
    program = Path(sys.argv[0])
    command = shlex.join([program.parent.name if program.stem == "__main__" else program.name, *sys.argv[1:]])
    process = {"pid": os.getpid(), "address": "", "neuron_runtime_tag": command, "error": "", "report": report}
    hardware = {"neuron_device_type": "neuroncore-rtl", "neuroncore_version": "v2", "error": ""}
    return {"neuron_runtime_data": [process], "system_data": {}, "neuron_hardware_info": hardware}


_NO_MEMORY = dict.fromkeys(("constants", "model_code", "model_shared_scratchpad", "runtime_memory"), 0)


def _percent(share: float) -> float:
    return round(100 * share, 2)
