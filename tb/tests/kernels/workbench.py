"""Workbench of a kernel, on the core from HBM to HBM, or on the vector and scalar engines from SBUF to SBUF."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.program import HbmTensor, Program, build_image
from neuroncore_rtl.kernels.tiling.rows import Rows, place_rows, replicate
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.elementwise import ElementwiseJob, ElementwiseProgram, record_of
from neuroncore_rtl.run.harness.engines.elementwise import ENGINES, PROGRAM_DEPTH
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.job import ImageJob, Job
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result, hbm_cycles, roofline
from neuroncore_rtl.run.settings import Settings, UsageError, check_room, refusals
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.costs import busy_cycles
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Instruction, Storage
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = [
    "SIZES", "CoreWorkbench", "Draws", "EngineWorkbench", "KernelBuild", "KernelScenario", "References", "Workbench",
]  # fmt: skip

SIZES = (
    "M", "K", "N", "SEQ", "KEYS", "DIM", "HEADS", "HIDDEN", "VOCAB", "IMAGES", "CHANNELS", "HEIGHT", "WIDTH", "FILTER",
)  # fmt: skip
"""Variables of TESTs that set a dimension of the operands."""

Matrix = Rows | HbmTensor
Matrices = Sequence[Matrix]
Kernel = Callable[..., None]
References = Mapping[str, tuple[Matrix, np.ndarray]]  # results by name, each with its float64 reference


class Draws(np.random.Generator):
    """Random number generator that rejects arrays too large to simulate before it draws them."""

    def __init__(self, seed: int):
        super().__init__(np.random.PCG64(seed))

    def normal(self, loc=0.0, scale=1.0, size=()) -> np.ndarray:
        check_room(np.dtype(np.float64).itemsize * prod(np.atleast_1d(np.array(size, dtype=object))))
        return super().normal(loc, scale, size)


KernelBuild = Callable[["Workbench", Settings, np.random.Generator], References]
"""Places random numbers, appends a kernel, and returns the references."""


class Workbench(ABC):
    """A program under construction, and its initial contents.

    `references` has the results by name, each with its float64 reference. `runs` has the indices of the executed
    sections, in order; None: every section once.
    """

    runs: Sequence[int] | None = None
    references: References = MappingProxyType({})

    def __init__(self, config: Config, order: str = Program.order, tile: int | None = None):
        with refusals():
            self.config, self.program = config, Program(config, order=order, tile=tile)
        self.contents: list[tuple[Matrix, np.ndarray]] = []

    @abstractmethod
    def room(self, name: str, shape: tuple[int, int], fmt: Format = FP32) -> Matrix:
        """Return a new matrix [rows, columns], initially zero."""

    @abstractmethod
    def vector(self, name: str, size: int, rows: int, fmt: Format = FP32) -> Matrix:
        """Return a new vector of parameters [size], which all `rows` rows of a matrix use."""

    @abstractmethod
    def append(self, kernel: Kernel, results: Matrices, operands: Matrices, shared: Matrices = ()) -> None:
        """Append a kernel; see `kernels.tiling.streamed.streamed` for the arguments."""

    @abstractmethod
    def job(self, test: str, settings: Settings) -> Job:
        """Return the job of the program, with this workbench as its subject."""

    @abstractmethod
    def codes(self, matrix: Matrix, result: Result) -> np.ndarray:
        """Return the codes of a matrix after the run."""

    def place(self, name: str, values: np.ndarray, fmt: Format = FP32) -> tuple[Matrix, np.ndarray]:
        """Place numbers [rows, columns]; return the matrix, and the numbers rounded to `fmt` as float64."""
        return self._fill(self.room(name, values.shape, fmt), values, fmt)

    def share(self, name: str, values: np.ndarray, rows: int, fmt: Format = FP32) -> tuple[Matrix, np.ndarray]:
        return self._fill(self.vector(name, len(values), rows, fmt), values, fmt)

    def _fill(self, matrix: Matrix, values: np.ndarray, fmt: Format) -> tuple[Matrix, np.ndarray]:
        codes = encode(values, fmt)
        self.contents.append((matrix, codes))
        return matrix, decode(codes, fmt)

    def _ideal_cycles(self) -> dict[str, int]:
        cycles = dict.fromkeys(ENGINES, 0)
        for one, times in self._executed():
            if one.engine.name.lower() in cycles:
                cycles[one.engine.name.lower()] += times * busy_cycles(one, self.config)
        return cycles

    def _executed(self) -> Iterator[tuple[Instruction, int]]:
        times = None if self.runs is None else Counter(self.runs)
        for entry in self.program.entries:
            yield entry.instruction, 1 if times is None else times[entry.section]

    def rows(self, settings: Settings, result: Result) -> Report:
        config = {} if result.prediction else {"config": self.config.named}
        errors = {}
        for name, (matrix, reference) in self.references.items() if result.memories else ():
            numbers = decode(np.ascontiguousarray(self.codes(matrix, result)), matrix.format)
            errors[f"error_of_{name.replace('.', '_')}"] = error_figures(numbers, reference)
        return Report(
            ideal_cycles=max(self._ideal_cycles().values()),
            rows=config | self._activity(settings, result) | errors,
        )

    @abstractmethod
    def _activity(self, settings: Settings, result: Result) -> dict[str, object]: ...


class CoreWorkbench(Workbench):
    """Matrices in HBM; the program is an image that loads them tile by tile, computes and stores."""

    def _ideal_cycles(self) -> dict[str, int]:
        columns = sum(one.columns * times for one, times in self._executed())
        return super()._ideal_cycles() | {"tensor": columns}

    def room(self, name: str, shape: tuple[int, int], fmt: Format = FP32) -> HbmTensor:
        check_room(self.program.space.fixed_end(Storage.HBM) + prod(shape) * fmt.bits // 8)
        return self.program.space.hbm(name, fmt, shape)

    def vector(self, name: str, size: int, rows: int, fmt: Format = FP32) -> HbmTensor:
        return self.program.space.hbm(name, fmt, (size,))

    def append(self, kernel: Kernel, results: Matrices, operands: Matrices, shared: Matrices = ()) -> None:
        streamed(self.program, kernel, results, operands, shared)

    def job(self, test: str, settings: Settings) -> ImageJob:
        """Return the job of the image; for the timing model the image has no contents."""
        modelled = settings.target == "model"
        with refusals():
            image = build_image(self.program, () if modelled else self.contents, runs=self.runs)
        given = {"behaviour": hbm_of(settings), "computes": False, "subject": self}
        return ImageJob(name="", machine=self.config, images=[image], **given)

    def codes(self, matrix: HbmTensor, result: Result) -> np.ndarray:
        return matrix.elements(result.memory)

    def rows(self, settings: Settings, result: Result) -> Report:
        report, moved = super().rows(settings, result), self._moved()
        bound = hbm_cycles(moved, self.config, settings.bandwidth)
        return replace(report, hbm_cycles=bound, details={"hbm_bytes_moved": moved})

    def _activity(self, settings: Settings, result: Result) -> dict[str, object]:
        ideal = self._ideal_cycles()
        slowest = max(ideal, key=ideal.get)
        bound = roofline(slowest, ideal[slowest], self._moved(), self.config, settings.bandwidth)
        return {"roofline": bound} | result.rows

    def _moved(self) -> int:
        copied = ((times, part) for one, times in self._executed() for part in one.transfers)
        return sum(times * size for times, (_, storage, size) in copied if storage == Storage.HBM)


class EngineWorkbench(Workbench):
    """Matrices in SBUF during the whole run."""

    def room(self, name: str, shape: tuple[int, int], fmt: Format = FP32) -> Rows:
        return place_rows(self.program.space, name, fmt, *shape, kept=True)

    def vector(self, name: str, size: int, rows: int, fmt: Format = FP32) -> Rows:
        return replicate(self.program.space.sbuf(name, fmt, (size,), kept=True), rows)

    def append(self, kernel: Kernel, results: Matrices, operands: Matrices, shared: Matrices = ()) -> None:
        kernel(self.program, *results, *(operand for operand in operands if operand not in results), *shared)

    def memories(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the initial SBUF and PSUM, uint8 [partitions, bytes], as many bytes as the program uses."""
        sizes = [max(4, -(-self.program.end(storage) // 4) * 4) for storage in (Storage.SBUF, Storage.PSUM)]
        sbuf = np.zeros((self.config.partitions, sizes[0]), np.uint8)
        for rows, codes in self.contents:
            rows.write(sbuf, codes)
        return sbuf, np.zeros((self.config.columns, sizes[1]), np.uint8)

    def job(self, test: str, settings: Settings) -> ElementwiseJob:
        config = self.config
        records = [record_of(entry, config) for entry in self.program.entries]
        for engine in ENGINES:
            count = sum(record.engine == engine for record in records)
            if count > PROGRAM_DEPTH:
                raise UsageError(
                    f"{test} must have at most {PROGRAM_DEPTH:,} instructions of the {engine} engine, not {count:,}: "
                    "reduce rows or steps, or add lanes"
                )
        sbuf, psum = self.memories()
        instructions = [entry.instruction for entry in self.program.entries]
        program = ElementwiseProgram(instructions=instructions, records=records, sbuf=sbuf, psum=psum)
        return ElementwiseJob(config=config, program=program, name="", stall=settings.stall, subject=self)

    def codes(self, matrix: Rows, result: Result) -> np.ndarray:
        return matrix.read(result.memories["sbuf"])

    def _activity(self, settings: Settings, result: Result) -> dict[str, object]:
        parts, names = result.outcome.parts, ("instructions", "busy", "elements")
        counters = {name: {engine: parts[engine].counters[name] for engine in ENGINES} for name in names}
        return counters | dict(result.files)


@dataclass(frozen=True, kw_only=True)
class KernelScenario(Scenario):
    """TEST of a program that is built on a workbench; build: see `KernelBuild`."""

    build: KernelBuild
    jobs: Callable[[Settings], Jobs] = field(init=False)
    rows: Callable[[Settings, Sequence[Result]], Report] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "jobs", self._jobs)
        object.__setattr__(self, "rows", lambda settings, results: results[0].job.subject.rows(settings, results[0]))
        super().__post_init__()

    def _jobs(self, settings: Settings) -> Jobs:
        bench_of = EngineWorkbench if settings.target == "engine" else CoreWorkbench
        bench = bench_of(settings.config, settings.order, settings.values.get("TILE"))
        with refusals():
            bench.references = self.build(bench, settings, Draws(settings.seed))
        yield bench.job(self.name, settings)


def error_figures(values: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Return the largest, root-mean-square and relative errors against float64."""
    error = np.abs(values - reference)
    size = np.abs(reference).max()
    relative = error[reference != 0] / np.abs(reference[reference != 0])
    return {
        "max": float(error.max()),
        "rms": float(np.sqrt(np.mean(error**2))),
        "max_over_largest_result": float(error.max() / size if size else 0),
        "median_relative": float(np.median(relative) if relative.size else 0),
    }
