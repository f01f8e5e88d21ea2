"""Targets that execute jobs: RTL, golden, timing model, board. `execute` judges their results."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neuroncore_rtl.golden import timing
from neuroncore_rtl.run.check.link_table import link_summary, link_table
from neuroncore_rtl.run.harness.board.board import SimulatedBoard
from neuroncore_rtl.run.harness.board.host_port import BOARD_MEMORY_BYTES, HostPort, LinkError, SerialLine
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import Expected, ImageJob, Job, record_count
from neuroncore_rtl.run.page.parts import note_result, profiled_runs
from neuroncore_rtl.run.report import progress, recordings
from neuroncore_rtl.run.result import Result, hbm_width
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.elaboration import engine_verilog
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.run.sim.vectors import lanes_choice, use_vectors
from neuroncore_rtl.run.view.link_picture import draw_links
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.files import write_profile
from neuroncore_rtl.run.view.timeline import write_timeline
from neuroncore_rtl.run.view.waves import waveform, write_save_file
from neuroncore_rtl.spec.config import Config

__all__ = ["TARGET_VARIABLES", "BoardTarget", "Golden", "ModelTarget", "Rtl", "Target", "execute", "target_of"]

NO_PROFILE = "PROFILE must be 0 for an engine alone, and for golden: the core and its timing model have profiles"

BEAT = 64
"""Bytes of a beat of every port; a board reads whole beats."""


@dataclass(frozen=True, kw_only=True)
class Target(ABC):
    """Base of the targets that execute jobs; `compares` tells whether memories can differ from golden's."""

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    profile: bool = False

    def prepare(self, config: Config) -> None:  # noqa: B027 # most targets have nothing to prepare
        """Do what an execution on a core needs and no program changes."""

    @abstractmethod
    def execute(self, job: Any) -> Result:
        """Execute a job and return its result without a verdict; UsageError if the target cannot execute the job."""


@dataclass(frozen=True, kw_only=True)
class Rtl(Target):
    """The RTL in a simulator.

    Arguments:
        lanes: "vector" or "scalar" evaluation of replicated modules; None: the environment's LANES, or vector.
        depth: levels of hierarchy in the waveform, 0 for all.
    """

    name = "rtl"
    compares = True

    sim: str = "verilator"
    lanes: str | None = None
    waves: bool = False
    depth: int = 3
    seed: int = 1

    def prepare(self, config: Config) -> None:
        with lanes_choice(self.lanes):
            engine_verilog(config, "core", vectors=self.sim == "verilator" and not self.waves and use_vectors())

    def execute(self, job: Job) -> Result:
        if self.profile and not isinstance(job, ImageJob):
            raise UsageError(NO_PROFILE)
        path = waveform(job.name) if self.waves and job.name else None
        work = job.work(self.seed, sampled=bool(job.name) and job.pictures, profiled=self.profile)
        levels = self.depth and self.depth + job.levels
        options: dict[str, Any] = {"doing": job.doing, "waves": path, "waves_levels": levels, "live": job.live()}
        with lanes_choice(self.lanes):
            outcome = run_device(job.device(waves=self.waves), work, sim=self.sim, **options)
        files = {"waveform": display_path(write_save_file(path, job.core))} if path else {}
        cycles, memories = job.cycles(outcome), outcome.memories
        return Result(job=job, target=self.name, memories=memories, cycles=cycles, outcome=outcome, files=files)


def _golden(job: Job, shown: str = "golden") -> Any:
    with progress(shown, f"golden: {job.name}, {job.doing}", done=job.golden_done):
        return job.golden()


@dataclass(frozen=True, kw_only=True)
class Golden(Target):
    """The numpy model, without cycles, waveforms and profiles."""

    name = "golden"

    waves: bool = False

    def execute(self, job: ImageJob) -> Result:
        if self.profile:
            raise UsageError(NO_PROFILE)
        if self.waves:
            raise UsageError("WAVES must be 0 for TARGET=golden, not 1")
        expected = _golden(job)
        job.judge(expected)
        return Result(job=job, target=self.name, memories=expected.memories, expected=expected)


@dataclass(frozen=True, kw_only=True)
class ModelTarget(Target):
    """The timing model: predicts the cycles of an image in seconds instead of hours; nothing is compared.

    Arguments:
        latency, bandwidth: parameters of HBM, see `golden.timing.MemoryTiming`.
        stall, waves: must be 0; the model has no random pauses and no signals.
    """

    name = "model"

    latency: int = 64
    bandwidth: int = 0
    stall: int = 0
    waves: int = 0

    def execute(self, job: Job) -> Result:
        for option in ("stall", "waves"):
            if getattr(self, option):
                raise UsageError(f"{option.upper()} must be 0 for TARGET=model, not {getattr(self, option)}")
        if not isinstance(job, ImageJob) or job.instance is not None or len(job.images) > 1:
            raise UsageError(f"TARGET=model must be given one image on one core, not {job.doing}")
        if job.config.cores > 1:
            raise UsageError(f"CORES must be 1 for TARGET=model, not {job.config.cores}")
        (image,), expected = job.images, None
        if job.computes or image.flow is not None:
            expected = _golden(job, f"golden: {job.note}" if job.note else "golden")
            job.judge(expected)
        options: dict[str, Any] = job.flow(expected.outcomes[0]) if expected else {}
        memory = timing.MemoryTiming(latency=self.latency, bandwidth=self.bandwidth)
        trace, records = [], record_count(image, options.get("sections"))
        with progress(f"timing model: {records:,} records", done=lambda: len(trace) / records):
            found = timing.predict(image, memory, trace=trace, **options)
        known = {"memories": expected.memories, "expected": expected} if expected else {}
        return Result(job=job, target=self.name, cycles=found.cycles, prediction=found, **known)


@dataclass(frozen=True, kw_only=True)
class BoardTarget(Target):
    """A board; the job's outputs, exit code and console are compared with golden's.

    Without `port` the board is simulated. `host` is an open connection to a board; it replaces `port` and `baud`.
    """

    name = "board"
    compares = True

    port: str | None = None
    baud: int = 1_000_000
    host: HostPort | None = None

    @contextmanager
    def connected(self, config: Config | None) -> Iterator[HostPort]:
        """Yield a connection to the board; `config` is the core of a simulated board, None for a board without one."""
        try:
            if self.host is not None:
                yield self.host
            elif self.port is not None:
                with closing(SerialLine(self.port, self.baud)) as line:
                    yield HostPort(line)
            else:
                with SimulatedBoard(config).line() as line:
                    yield HostPort(line)
        except LinkError as error:
            raise UsageError(str(error)) from error

    def execute(self, job: ImageJob) -> Result:
        """Load an image, run it, and read its outputs; UsageError if it does not fit or no board answers."""
        (image,), size = job.images, job.memories.shape[1]
        memory = np.zeros(-(-size // BEAT) * BEAT, np.uint8)
        if len(memory) > BOARD_MEMORY_BYTES:
            raise UsageError(f"the image must fit the board's {BOARD_MEMORY_BYTES:,} bytes, not {len(memory):,}")
        outputs = ((one.address, one.size * one.format.bits // 8) for one in job.outputs or ())
        spans = [(0, size)] if job.outputs is None else [(start, start + length) for start, length in outputs]
        read = np.zeros(job.memories.shape, bool)
        with self.connected(job.config) as port:
            with progress(f"loading {len(image.data):,} bytes, running them, and reading results"):
                outcome = port.run_image(image)
                for start, end in spans:
                    read[0, start:end] = True
                    first, last = start // BEAT * BEAT, -(-end // BEAT) * BEAT
                    memory[first:last] = np.frombuffer(port.read(first, last - first), np.uint8)
            outcome.counters["repeated commands"] = port.repeated
        found = {"memories": {"hbm": memory[None, :size]}, "read_back": {"hbm": read}}
        return Result(job=job, target=self.name, cycles=outcome.cycles, outcome=outcome, **found)


def target_of(values: Mapping[str, Any]) -> Target:
    """Return the target that the value of TARGET names, by default the RTL, from `TARGET_VARIABLES`."""
    kind, options = _TARGETS[values.get("TARGET", "rtl")]
    return kind(**{option: values[option.upper()] for option in options if values.get(option.upper()) is not None})


_RTL = Rtl, ("sim", "lanes", "waves", "depth", "seed", "profile")
_TARGETS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "core": _RTL,
    "rtl": _RTL,
    "engine": _RTL,
    "golden": (Golden, ("waves", "profile")),
    "board": (BoardTarget, ("port", "baud")),
    "model": (ModelTarget, ("latency", "bandwidth", "stall", "waves", "profile")),
}
"""Targets by the value of TARGET: the class, and the variables that are its arguments."""

TARGET_VARIABLES = ("TARGET", *sorted({option.upper() for _, options in _TARGETS.values() for option in options}))
"""Variables that choose a target."""


def execute(job: Job, on: Target) -> Result:
    """Execute a job and return its result; print the first differences from golden.

    Raises UsageError if the target cannot execute the job, SimulationFailed if the simulation does not end.
    """
    expected = None
    if on.profile:
        require_packages("plots")  # before a run that takes long
    if on.compares and type(job).golden is not Job.golden:  # golden knows such jobs
        expected = _golden(job)
    result = on.execute(job)
    outcome, found = result.outcome, {}
    if expected is not None:
        found = _compare(job, result, expected)
        if any(found["mismatched_parts"].values()):
            found["differences"] = tuple(job.differences(result.memories, expected))
            print(*found["differences"], sep="\n")
        if outcome is not None:
            found["failures"] = tuple(job.failures(outcome, expected))
    if job.instance is not None and outcome is not None and outcome.links is not None:
        links = outcome.links
        table = link_table(job.instance, links.counters, result.cycles or 0, links.dead)
        found |= {"links": table, "link_summary": link_summary(job.instance, table, sum(links.disturbed))}
    if outcome is not None and not outcome.host:
        found["files"] = _pictures(job, result, found.get("links", {})) | dict(result.files)
    bandwidth = getattr(on, "bandwidth", job.bandwidth)
    if on.profile and isinstance(job, ImageJob):
        found["profiled"], found["profile"] = _profile(result, bandwidth)
    result = replace(result, **found)
    note_result(result, bandwidth)
    return result


def _compare(job: Job, result: Result, expected: Expected) -> dict[str, Any]:
    """Compare the memories of a result with golden's; return the values for the fields of `Result`."""
    if result.read_back:
        memories = result.memories, expected.memories
        pairs = {name: [memory[name][at] for memory in memories] for name, at in result.read_back.items()}
    else:
        found, golden = (job.parts(memories) for memories in (result.memories, expected.memories))
        pairs = {name: [found[name], part] for name, part in golden.items()}
    return {
        "expected": expected,
        "compared_parts": {name: part.size for name, (_, part) in pairs.items()},
        "mismatched_parts": {name: int(np.count_nonzero(part != golden)) for name, (part, golden) in pairs.items()},
    }


def _pictures(job: Job, result: Result, links: Mapping) -> dict[str, str]:
    tracks = [*job.tracks(result.outcome)] if job.name and job.pictures and result.outcome else []
    if not tracks:
        return {}
    files = {"timeline": display_path(write_timeline(recordings() / "timelines" / f"{job.name}.json", tracks))}
    if job.instance is not None:
        path = recordings() / "plots" / f"{job.name}.png"
        files["picture"] = display_path(draw_links(path, job.instance, links, job.title, f"{result.cycles:,} cycles"))
    return files


def _profile(result: Result, bandwidth: int) -> tuple[Figures, Path]:
    ((name, run, _),) = profiled_runs(result)
    with progress("writing the profile"):
        folder = (recordings() / "profiles" / name).absolute()
        return write_profile(folder, run, hbm_width(run.config, bandwidth)), folder
