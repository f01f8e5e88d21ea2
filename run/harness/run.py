"""Runs a device: whatever can be put into a harness, Verilog that takes its work from files, writes its results to
files and raises `done` in the end."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim import light_start, run_to_end, simulation
from neuroncore_rtl.run.sim.clock import PERIOD_NS
from neuroncore_rtl.run.sim.parcels import note, noted
from neuroncore_rtl.run.sim.vectors import use_vectors

__all__ = ["Device", "built", "run", "run_harness"]


class Device(Protocol):
    """What is simulated, with its parameters. Equal devices have the same Verilog.

    Attributes:
        label: names the directories of its runs.
        ports: of the harness, read at the end.
    """

    @property
    def label(self) -> str: ...
    @property
    def ports(self) -> Sequence[str]: ...

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        """Return the device in its harness, with `done` and the ports public; waves: with what a waveform needs;
        vectors: with blocks of lanes as vectors, where it has any (`run.sim.vectors`)."""
        ...

    def load(self, work: Any, directory: Path) -> tuple[list[str], int]:
        """Write what the harness reads; return its plusargs, and the cycles until it is given up, above its own limit.

        Arguments:
            work: what the device is to do; each device has a class of its own for it.
            directory: of this run alone.

        Raises:
            ValueError: if the work does not fit the device.
        """
        ...

    def read(self, work: Any, directory: Path, state: dict[str, int | float]) -> Outcome:
        """Return what the harness wrote.

        Arguments:
            work, directory: as of `load`.
            state: what the ports say in the end.

        Raises:
            SimulationFailed: if the device broke a rule that leaves nothing to compare.
        """
        ...


def built(device: Device, sim: str = "verilator", waves: bool = False) -> simulation.Build:
    """Return the build of a device for a simulator; waves: one that can record a waveform."""
    build, needed = _built(device, sim, waves, sim == "verilator" and not waves and use_vectors())
    note(*needed)
    return build


@lru_cache(maxsize=8)
def _built(device: Device, sim: str, waves: bool, vectors: bool) -> tuple[simulation.Build, list[Path]]:
    """Return the build, and what is needed to find it again."""
    with noted() as names:
        build = simulation.build(device.design(waves=waves, vectors=vectors), sim, waves=waves)
    return build, [SIM_BUILD / name for name in names]


def run(
    device: Device,
    work: object,
    *,
    sim: str = "verilator",
    waves: Path | None = None,
    waves_levels: int = 0,
    doing: str = "running",
    plusargs: Sequence[str] = (),
) -> Outcome:
    """Let a device do its work in a simulator, and return what became of it.

    Arguments:
        device: the device.
        work: what it is to do.
        sim: one of `run.sim.simulation.SIMULATORS`.
        waves: where to put the recorded waveform; None: none is recorded.
        waves_levels: see `run.sim.simulation.run_simulation`.
        doing: what to tell whoever waits for it.
        plusargs: further arguments of the simulation.

    Raises:
        ValueError: if the work does not fit the device.
        SimulationFailed: if the harness is not done within its limit or breaks off, as where a protocol is violated.
    """
    with simulation.run_directory(device.label) as directory:
        directory = directory.resolve()
        arguments, limit = device.load(work, directory)
        build = built(device, sim, waves is not None)
        with progress(f"{sim}: {doing}"):
            options = {"plusargs": [*arguments, *plusargs], "limit": limit, "waves_levels": waves_levels}
            state = run_harness(build, directory, device.ports, **options)
        if waves is not None:
            waves.parent.mkdir(parents=True, exist_ok=True)
            (directory / "waves.vcd").replace(waves)
        return replace(device.read(work, directory, state), seconds=state["seconds"])


def run_harness(
    build: simulation.Build,
    directory: Path,
    ports: Sequence[str] = (),
    *,
    plusargs: Sequence[str],
    limit: int,
    waves_levels: int = 0,
) -> dict[str, int | float]:
    """Run a harness until it is done, and return what its ports say then, and the wall time of the run as `seconds`.

    Arguments:
        build: its build, with `done` and the ports public.
        directory: of this run alone.
        ports: to read.
        plusargs: its arguments.
        limit: cycles after which the run is given up; a harness has a limit of its own, below this one.
        waves_levels: see `run.sim.simulation.run_simulation`.

    Raises:
        SimulationFailed: if the harness is not done within the limit, or breaks off.
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
