"""Runs a harness: Verilog that takes its work from files, writes its results to files, and raises `done` in the end."""

import json
from collections.abc import Sequence
from pathlib import Path

from neuroncore_rtl.tb.sim import run_to_end, simulation
from neuroncore_rtl.tb.sim.clock import PERIOD_NS

__all__ = ["run_harness"]


def run_harness(
    built: simulation.Build,
    directory: Path,
    ports: Sequence[str] = (),
    *,
    plusargs: Sequence[str],
    limit: int,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> dict[str, int | float]:
    """Run a harness until it is done, and return what its ports say then, and the wall time of the run as `seconds`.

    Arguments:
        built: its build, with `done` and the ports public.
        directory: of this run alone (see `tb.sim.simulation.run_directory`).
        ports: to read.
        plusargs: its arguments.
        limit: cycles after which the run is given up; a harness has a limit of its own, below this one.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        SimulationFailed: if the harness is not done within the limit, or breaks off.
    """
    state = directory.resolve() / "state.json"
    simulation.run(
        built,
        run_to_end.__name__,
        run_dir=directory,
        plusargs=plusargs,
        env={run_to_end.PORTS_VARIABLE: ",".join(ports), run_to_end.STATE_VARIABLE: str(state)},
        timeout_ns=limit * PERIOD_NS,
        waves_levels=waves_levels,
    )
    if waves is not None:
        waves.parent.mkdir(parents=True, exist_ok=True)
        (directory / "waves.vcd").replace(waves)
    return json.loads(state.read_text())
