"""Runs of devices in simulators.

A device's harness is Verilog that reads work from files, writes results to files and then asserts `done`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.harness.live import LiveRun
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim import light_start, run_to_end, simulation
from neuroncore_rtl.run.sim.clock import PERIOD_NS
from neuroncore_rtl.run.sim.parcels import note, noted
from neuroncore_rtl.run.sim.vectors import use_vectors

__all__ = ["Device", "build_device", "run_device", "run_harness"]


class Device(Protocol):
    """A simulated design; `label` names run directories, `ports` are read at the end. Equal devices share Verilog."""

    @property
    def label(self) -> str: ...
    @property
    def ports(self) -> Sequence[str]: ...

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        """Return the device in its harness; `vectors` runs replicated modules as vector code (`run.sim.vectors`)."""
        ...

    def load(self, work: Any, directory: Path) -> tuple[list[str], int]:
        """Write the input files of `work`; return plusargs, and a limit of cycles above the harness's limit."""
        ...

    def read_outcome(self, work: Any, directory: Path, state: dict[str, int | float]) -> Outcome:
        """Return the outcome; SimulationFailed if the device broke a rule."""
        ...


def build_device(device: Device, sim: str = "verilator", waves: bool = False) -> simulation.Build:
    """Return the build of a device; `waves` lets its runs record waveforms."""
    build, needed = _built(device, sim, waves, sim == "verilator" and not waves and use_vectors())
    note(*needed)
    return build


@lru_cache(maxsize=8)
def _built(device: Device, sim: str, waves: bool, vectors: bool) -> tuple[simulation.Build, list[Path]]:
    """Return the build of a device, and the files by which a later process finds it."""
    with noted() as names:
        build = simulation.build(device.design(waves=waves, vectors=vectors), sim, waves=waves)
    return build, [SIM_BUILD / name for name in names]


def run_device(
    device: Device,
    work: object,
    *,
    sim: str = "verilator",
    waves: Path | None = None,
    waves_levels: int = 0,
    doing: str = "running",
    plusargs: Sequence[str] = (),
    live: LiveRun | None = None,
) -> Outcome:
    """Simulate a device with the input `work` and return its outcome.

    `waves` is the path for a waveform, or None. `live` shows the device while it runs.

    Raises ValueError if the work does not fit the device, SimulationFailed if the harness is not done within its limit,
    or stops, for example on a protocol violation.
    """
    with simulation.run_directory(device.label) as directory:
        directory = directory.resolve()
        arguments, limit = device.load(work, directory)
        build = build_device(device, sim, waves is not None)
        shown = f"{sim}: {doing}" + (", recording a waveform" if waves else "")
        # The same work on another build takes another time.
        live = live or LiveRun()
        live.directory = directory
        with progress(shown, f"{shown} on {build.directory.name}", done=live.done, machine=live):
            options = {"plusargs": [*arguments, *plusargs], "limit": limit, "waves_levels": waves_levels}
            state = run_harness(build, directory, device.ports, **options)
        if waves is not None:
            waves.parent.mkdir(parents=True, exist_ok=True)
            (directory / "waves.vcd").replace(waves)
        return replace(device.read_outcome(work, directory, state), seconds=state["seconds"])


def run_harness(
    build: simulation.Build,
    directory: Path,
    ports: Sequence[str] = (),
    *,
    plusargs: Sequence[str],
    limit: int,
    waves_levels: int = 0,
) -> dict[str, int | float]:
    """Run a harness until it is done; return the final values of its public `ports`, and the wall time as `seconds`.

    Raises SimulationFailed if it is not done within `limit` cycles, a limit above its own.
    """
    state = directory.resolve() / "state.json"
    env = {
        "PYGPI_USERS": light_start.ENTRIES,
        run_to_end.PORTS_VARIABLE: ",".join(ports),
        run_to_end.STATE_VARIABLE: str(state),
    }
    options = {"plusargs": plusargs, "env": env, "timeout_ns": limit * PERIOD_NS, "waves_levels": waves_levels}
    simulation.run_simulation(build, run_to_end.__name__, run_dir=directory, **options)
    return json.loads(state.read_text())
