"""Measurement of a device in both ways to simulate replicated modules: all copies as one vector, or one by one.

A cold build is a build without any cached file.
"""

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim import simulation, vectors
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.run.sim.vectors import LANES_VARIABLE, WAYS, lanes_choice, use_vectors

__all__ = ["COLUMNS", "WaysDiffer", "cold_build", "measure_time", "measured_ways", "side_by_side"]

Figures = Mapping[str, object]


class WaysDiffer(SimulationFailed):
    """A figure of a device depends on the way in which it is simulated; the message names the device and the figure."""


def measured_ways() -> tuple[str, ...]:
    """Return the ways to measure: the way that the environment selects, else all of `run.sim.vectors.WAYS`."""
    return (WAYS[not use_vectors()],) if os.environ.get(LANES_VARIABLE) else WAYS


def side_by_side(device: str, measure: Callable[[], tuple[Figures, Figures]]) -> dict[str, object]:
    """Measure a device in each way; raise WaysDiffer if a figure of the device depends on the way.

    `measure` simulates the device in the current way (`run.sim.vectors.use_vectors`). It returns figures of the device,
    and figures of the simulation, including `cycles_per_s`.

    Returns:
        The figures of the device; by way, a dict with the figures of the simulation; and with two ways, as `speed_up`,
        the ratio of their cycles per second.
    """
    found, simulations = {}, {}
    for way in measured_ways():
        with lanes_choice(way):
            found[way], simulations[way] = measure()
    first, *others = found.values()
    for name in first:
        if any(other[name] != first[name] for other in others):
            values = " and ".join(f"{figures[name]} ({way})" for way, figures in found.items())
            raise WaysDiffer(f"{name} of the {device} must be the same in both ways, not {values}")
    speeds = [simulation["cycles_per_s"] for simulation in simulations.values()]
    return {**first, **simulations, **({"speed_up": speeds[0] / speeds[1]} if others else {})}


COLUMNS = (
    "WAY elaborate s: {WAY[elaboration_s]:.1f} | WAY cold\\nbuild s: {WAY[cold_build_s]:.1f} | "
    "WAY peak GiB: {WAY[build_peak_gib]:.2f}"
)
"""Columns of tables with the figures of cold builds, for each way to simulate."""

Result = TypeVar("Result")
GIB = 1 << 20  # `ru_maxrss` is in kilobytes


def measure_time(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a function and its seconds."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def cold_build(elaborate: Callable[[bool], object], design: Callable[..., simulation.Design]) -> dict[str, float]:
    """Measure elaboration and the build without caches, in seconds, and the largest process in GiB; keep the build."""
    # The system reports the largest of all children that a process ever had.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(elaborate, design, sender))
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        raise simulation.BuildFailed("the process of a cold build ended before the build") from None
    finally:
        process.join()
    if isinstance(found, Exception):
        raise found
    return found


def _measure(elaborate: Callable, design: Callable, sender) -> None:
    SIM_BUILD.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="cold-", dir=SIM_BUILD) as root:
            vectors.libraries_folder = Path(root) / "lanes"  # in this process only
            _, elaboration = measure_time(lambda: elaborate(vectors.use_vectors()))
            _, build = measure_time(lambda: simulation.build(design(vectors=vectors.use_vectors()), root=Path(root)))
            _keep(Path(root), SIM_BUILD)
    except (simulation.BuildFailed, MissingTool) as failed:
        sender.send(failed)
        return
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / GIB
    sender.send({"elaboration_s": elaboration, "cold_build_s": elaboration + build, "build_peak_gib": peak})


def _keep(root: Path, place: Path) -> None:
    """Move builds and libraries of vectorised modules, with their sources, to `place`; existing builds there remain."""
    for pattern in ("verilator/*", "lanes/*.cpp", "lanes/*.v", "lanes/*/*.so"):
        for path in sorted(root.glob(pattern)):
            kept = place / path.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(kept.with_suffix(".lock")):  # the lock of the builder
                if not kept.exists():
                    path.rename(kept)
