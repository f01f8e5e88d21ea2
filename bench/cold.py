"""Wall time of functions, and of cold builds: builds without any cached file."""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim import simulation, vectors
from neuroncore_rtl.run.sim.doctor import MissingTool

__all__ = ["COLUMNS", "cold_build", "measure_time"]

COLUMNS = (
    "WAY elaborate s: {WAY[elaboration_s]:.1f} | WAY cold\\nbuild s: {WAY[cold_build_s]:.1f} | "
    "WAY peak GiB: {WAY[build_peak_gib]:.2f}"
)
"""Figures of cold builds, for each way to simulate (`bench.ways`)."""

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
    try:
        sender.send(_figures(elaborate, design))
    except (simulation.BuildFailed, MissingTool) as failed:
        sender.send(failed)


def _figures(elaborate: Callable, design: Callable) -> dict[str, float]:
    SIM_BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cold-", dir=SIM_BUILD) as root:
        vectors.libraries_folder = Path(root) / "lanes"  # in this process only
        started = time.perf_counter()
        elaborate(vectors.use_vectors())
        elaborated = time.perf_counter()
        simulation.build(design(vectors=vectors.use_vectors()), root=Path(root))
        built = time.perf_counter()
        _keep(Path(root), SIM_BUILD)
    return {
        "elaboration_s": elaborated - started,
        "cold_build_s": built - started,
        "build_peak_gib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / GIB,
    }


def _keep(root: Path, place: Path) -> None:
    """Move builds and libraries of vectorised modules, with their sources, to `place`; existing builds there remain."""
    for pattern in ("verilator/*", "lanes/*.cpp", "lanes/*.v", "lanes/*/*.so"):
        for path in sorted(root.glob(pattern)):
            kept = place / path.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(kept.with_suffix(".lock")):  # the lock of the builder
                if not kept.exists():
                    path.rename(kept)
