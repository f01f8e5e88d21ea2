"""Results of a run: memories, cycles, their causes, and the comparison with golden."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.kernels.program import HbmTensor, Image, Program
from neuroncore_rtl.kernels.program.spilling import spill_table
from neuroncore_rtl.kernels.source import Line, SourceLine
from neuroncore_rtl.run.arrays import numbers_of
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Expected
from neuroncore_rtl.run.report import Share, align_rows
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.stalls import MEANINGS
from neuroncore_rtl.run.view.source_lines import LineCycles, costly_lines, cycles_by_line, line_table, short_code
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, Storage, queue_name

__all__ = ["Result", "hbm_cycles", "hbm_width", "predicted_rows", "roofline"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a job on a target; the result of an image on one core prints as a table.

    Arguments:
        job: a `run.job.Job`.
        memories: after the run, uint8, by name; empty if the target computes none.
        cycles: None if the target has no clock.
        read_back: valid bytes of each memory that was read in part, bool of its shape.
        expected: golden's result, if golden ran.
        compared_parts, mismatched_parts: number of compared bytes, and of different bytes, by memory.
        differences: the first differences from golden's memories, a line each.
        failures: further reasons why the run failed, a sentence each.
        files: paths of recorded files by kind.
        links, link_summary: activity of links, see `run.check.link_table`.
        profiled, profile: figures and folder of the profile.
        program: the program from which the image was made, if known.
    """

    job: Any
    target: str
    memories: Mapping[str, np.ndarray] = field(default_factory=dict)
    cycles: int | None = None
    outcome: Outcome | None = None
    prediction: Prediction | None = None
    read_back: Mapping[str, np.ndarray] = field(default_factory=dict)
    expected: Expected | None = None
    compared_parts: Mapping[str, int] = field(default_factory=dict)
    mismatched_parts: Mapping[str, int] = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    link_summary: Mapping[str, object] = field(default_factory=dict)
    profiled: Figures | None = None
    profile: Path | None = None
    program: Program | None = None

    @property
    def image(self) -> Image:
        """The first image of the job."""
        return self.job.images[0]

    @property
    def hbm(self) -> np.ndarray:
        """HBM, uint8 [cores, bytes]."""
        return self.memories["hbm"]

    @property
    def memory(self) -> np.ndarray:
        """HBM of a lone core, uint8 from address 0."""
        return self.hbm[0]

    @property
    def compared(self) -> int:
        """Number of bytes that were compared with golden's."""
        return sum(self.compared_parts.values())

    @property
    def mismatches(self) -> int:
        """Number of compared bytes that differ from golden's."""
        return sum(self.mismatched_parts.values())

    @property
    def bit_exact(self) -> bool | None:
        """True if every compared byte is golden's; None if nothing could be compared."""
        return self.mismatches == 0 if self.compared else None

    @property
    def _ran(self) -> Outcome | None:
        """Outcome of the first image; None without RTL, and for a board, whose host reads less."""
        return self.outcome.parts.get(0) if self.outcome else None

    @property
    def rows(self) -> dict[str, object]:
        """Rows of a report about the result: activity of a lone core, recorded files, profile."""
        found = {}
        if self.prediction is not None:
            found = predicted_rows(self.prediction, self.job.config)
        elif self._ran is not None:
            found = summary(self._ran, self.job.config)
        return found | dict(self.files) | self.profile_rows

    @property
    def profile_rows(self) -> dict[str, object]:
        """Rows of a report about the profile: folder, cycles of the busiest engine by cause, and of costly lines."""
        if self.profiled is None or self.profile is None:
            return {}
        cycles, meanings = self.profiled.run.cycles, (*MEANINGS.values(), "the cycles of the run")
        counts = self.causes | {"sum": sum(self.causes.values())}
        table = {
            name: {"cycles": count, "share": Share(count / max(cycles, 1)), "meaning": meaning}
            for (name, count), meaning in zip(counts.items(), meanings, strict=True)
        }
        # The lines that append the instructions, in the kernel or in the library's kernels that it calls.
        lines = line_table(costly_lines(self._cycles_by_line(lambda source: source.kernel)), cycles)
        profile = display_path(self.profile)
        return {"profile": profile, f"cycles_of_{self.busiest}": table, "cycles_of_lines": lines}

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """Busy share of the cycles, by engine; "dma" is the busiest DMA engine."""
        busy = engine_busy_cycles(self._ran) if self._ran else {}
        if self.prediction is not None:
            found = self.prediction.busy
            busy = {name: count for name, count in found.items() if not name.startswith("dma")}
            busy["dma"] = max(count for name, count in found.items() if name.startswith("dma"))
        return {name: count / (self.cycles or 1) for name, count in busy.items()}

    @cached_property
    def stalls(self) -> dict[str, dict[str, int]]:
        """Cycles in which the engine of a queue received no record, by queue and cause."""
        if self.prediction is not None:
            return {queue: dict(own) for queue, own in self.prediction.waits.items() if any(own.values())}
        queues = queue_cycles(self._ran, self.image.config) if self._ran else {}
        return {queue: {c: n for c, n in own.items() if c != "executing"} for queue, own in queues.items()}

    @cached_property
    def lines(self) -> dict[Line, LineCycles]:
        """Engine cycles of the instructions of each line of the user's kernel; see `run.view.source_lines`."""
        return self._cycles_by_line(lambda source: source.user)

    def _cycles_by_line(self, line: Callable[[SourceLine], Line]) -> dict[Line, LineCycles]:
        records = self.prediction.records if self.prediction else self._ran.events if self._ran else ()
        ran = ((self.image.entry(one.address), one.issued, one.retired) for one in records)
        return cycles_by_line(ran, self.cycles or 0, line)

    @property
    def timeline(self) -> Path | None:
        """Path of the recorded timeline, a file for https://ui.perfetto.dev."""
        return self._file("timeline")

    @property
    def waveform(self) -> Path | None:
        """Path of the recorded waveform, a file for GTKWave."""
        return self._file("waveform")

    @property
    def report(self) -> Path | None:
        """Path of the page of the run, a file for a web browser."""
        return self._file("report")

    def _file(self, kind: str) -> Path | None:
        return Path(self.files[kind]).absolute() if kind in self.files else None

    @property
    def busiest(self) -> str | None:
        """The queue of the busiest engine of a profile."""
        return self.profiled.run.queue_name(self.profiled.run.busiest) if self.profiled else None

    @property
    def causes(self) -> dict[str, int]:
        """Number of cycles of the busiest engine of a profile by cause; see `run.view.profile.stalls`."""
        return self.profiled.stalls[str(self.busiest)] if self.profiled else {}

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Values of the tensors in HBM that the program wrote, by name, the first of each; see `numbers_of`."""
        return {name: self.read(tensor) for name, tensor in self._outputs.items()}

    @cached_property
    def codes(self) -> dict[str, np.ndarray]:
        """The tensors of `arrays` as codes, unsigned integers."""
        return {name: self.read_codes(tensor) for name, tensor in self._outputs.items()}

    def read(self, tensor: HbmTensor) -> np.ndarray:
        """Return the numbers of a tensor or view in HBM."""
        return numbers_of(self.read_codes(tensor), tensor.format)

    def read_codes(self, tensor: HbmTensor) -> np.ndarray:
        """Return the codes of a tensor or view in HBM."""
        return np.ascontiguousarray(tensor.elements(self.memory))

    @cached_property
    def _outputs(self) -> dict[str, HbmTensor]:
        """Tensors in HBM that some instruction of the program writes, at least in part."""
        regions = (region for part in self.image.entries for entry in part for region in entry.instruction.writes)
        spans = {region.span for region in regions if region.storage == Storage.HBM}
        found: dict[str, HbmTensor] = {}
        for tensor in self.image.space.hbm_tensors if self.image.space else ():
            first, end = tensor.address, tensor.address + tensor.size * tensor.format.bits // 8
            if any(low < end and high > first for low, high in spans):
                found.setdefault(tensor.name, tensor)
        return found

    def __str__(self) -> str:
        return "\n".join([*align_rows(self._table()), *self._costly_lines()])

    def _costly_lines(self) -> Iterator[str]:
        lines = costly_lines(self.lines)
        width = max(map(len, map(str, lines)), default=0)
        if lines:
            yield "lines of the kernel, cycles of its instructions"
        for line, cost in lines.items():
            share = f"{cost.cycles / (self.cycles or 1):.1%}"
            count = f"{cost.cycles:>11,}  {share:>6}  {cost.records:>9,} instructions"
            yield f"  {line!s:{width}}  {count}  {short_code(line)}".rstrip()

    def _table(self) -> Iterator[tuple[str, str]]:
        config = self.image.config
        yield "target", f"{self.target}, {config.rows} x {config.columns} processing elements"
        if self.cycles is not None:
            yield "cycles", f"{self.cycles:,}" + " by the timing model: no RTL has run" * (self.target == "model")
            if config.clock_mhz:
                yield "microseconds", config.microseconds_text(self.cycles)
        if self.utilisation:
            yield "utilisation", ", ".join(f"{name} {share:.1%}" for name, share in self.utilisation.items())
            for queue, causes in self.stalls.items():
                yield f"stalls of {queue}", _counts(causes)
        if self.bit_exact is not None:
            yield "bit-exact", f"{'yes' if self.bit_exact else 'no'}, {self.compared:,} bytes compared"
        for row in spill_table(self.image.spills):
            yield "spilled", "{tile}: {copies:,} copies, {bytes:,} bytes".format_map(row)
        files = {"timeline": self.timeline, "waveform": self.waveform, "profile": self.profile, "report": self.report}
        yield from ((name, display_path(path)) for name, path in files.items() if path is not None)
        if self.profiled is not None:
            yield f"cycles of {self.busiest}", _counts(self.causes)
        for name, array in self.arrays.items():
            yield name, f"{list(array.shape)} {self._outputs[name].format.name}"


def _counts(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {count:,}" for cause, count in causes.items() if count)


def predicted_rows(found: Prediction, config: Config) -> dict[str, object]:
    """Return rows of a report about a prediction of the timing model."""
    waits = {queue: _shares(causes, found.cycles) for queue, causes in found.waits.items() if any(causes.values())}
    busy = _shares({name: count for name, count in found.busy.items() if count}, found.cycles)
    return {"records": len(found.records), "config": config.named, "busy": busy, "waits": waits}


def _shares(counts: Mapping[str, int], cycles: int) -> dict[str, Share]:
    return {name: Share(count / max(cycles, 1)) for name, count in counts.items()}


def hbm_width(config: Config, bandwidth: int) -> int:
    """Return the maximum bytes per cycle of HBM; `bandwidth` is a limit, or 0 for the machine's own."""
    width, limit = config.hbm_ports * config.hbm_bytes, bandwidth or config.hbm_rate
    return min(width, limit) if limit else width


def engine_busy_cycles(run: Outcome) -> dict[str, int]:
    """Return the busy cycles by engine: "tensor" while a column enters the array; "dma" is the busiest DMA engine."""
    counters = run.counters
    busy = {"tensor": counters["tensor"]["columns"], "vector": counters["vector"]["busy"]}
    return busy | {"scalar": counters["scalar"]["busy"], "dma": max(dma["busy"] for dma in counters["dma"])}


def queue_cycles(run: Outcome, config: Config) -> dict[str, dict[str, int]]:
    """Return the cycles of each queue that had records, by cause, without idle cycles after the program's end."""
    found = {}
    for number, queue in enumerate(run.counters["queues"]):
        if queue["records"]:
            counts = {name: queue[name] for name in QUEUE_COUNTERS[1:]}
            counts["idle"] = max(0, counts["idle"] - (sum(counts.values()) - run.cycles))
            found[queue_name(number, config)] = counts
    return found


def hbm_cycles(moved: int, config: Config, bandwidth: int) -> int:
    """Return the minimum cycles in which HBM can transfer `moved` bytes; for `bandwidth` see `hbm_width`."""
    return -(-moved // hbm_width(config, bandwidth))


def roofline(engine: str, ideal: int, moved: int, config: Config, bandwidth: int) -> str:
    """Return a sentence that compares the `ideal` cycles of an engine with HBM's for `moved` bytes."""
    width, cycles = hbm_width(config, bandwidth), hbm_cycles(moved, config, bandwidth)
    bound = engine if ideal >= cycles else "HBM"
    return f"{bound}: {engine} {ideal:,} cycles, HBM {cycles:,} for {moved:,} bytes at {width} a cycle"


def summary(run: Outcome, config: Config) -> dict[str, object]:
    """Return rows of a report about a run: activity of engines and queues, transferred bytes."""
    counters = run.counters
    moved = {name: sum(dma[name] for dma in counters["dma"]) for name in ("read_bytes", "write_bytes")}
    records = {queue_name(number, config): queue["records"] for number, queue in enumerate(counters["queues"])}
    stalls = {name: _shares(counts, run.cycles) for name, counts in queue_cycles(run, config).items()}
    queues = {name: {"records": records[name], **shares} for name, shares in stalls.items()}
    conflicts = {name: count for name, count in counters["conflicts"].items() if count}
    found = {"busy": _shares(engine_busy_cycles(run), run.cycles), "dma_bytes": moved, "queues": queues}
    return found | {"conflicts": conflicts, "controller": counters["controller"]}
