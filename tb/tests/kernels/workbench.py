"""What a kernel is put to work in: from HBM to HBM on the core, or from SBUF to SBUF on the two engines alone.

A TEST places numbers and appends kernels, and need not know where that is; every byte that results is compared with
golden, and the results themselves with float64.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.program.image import build_image
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.rows import Rows, place_rows, replicate
from neuroncore_rtl.kernels.program.tensor import HbmTensor
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.core import check_room, hbm_cycles, hbm_of, roofline, summary
from neuroncore_rtl.run.elementwise import ElementwiseProgram, record_of
from neuroncore_rtl.run.execution import execute
from neuroncore_rtl.run.harness.engines.elementwise import ENGINES, PROGRAM_DEPTH, ElementwiseDevice
from neuroncore_rtl.run.images import ImageTask
from neuroncore_rtl.run.modelled import modelled_report, predicted
from neuroncore_rtl.run.profiled import profile_lines, refuse_profile
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings, UsageError, refusals
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.costs import busy_cycles
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Instruction, Storage
from neuroncore_rtl.tb.tests.engines.instructions import compare_program

__all__ = [
    "SIZES",
    "CoreWorkbench",
    "Draws",
    "EngineWorkbench",
    "ModelWorkbench",
    "References",
    "Workbench",
]

SIZES = (
    "M", "K", "N", "SEQ", "KEYS", "DIM", "HEADS", "HIDDEN", "VOCAB", "IMAGES", "CHANNELS", "HEIGHT", "WIDTH", "FILTER",
)  # fmt: skip
"""Variables by which results are told apart, in the order in which they name one."""

ELSEWHERE = {*SIZES, "PRESET", "ROWS", "COLUMNS", "DTYPE", "SIM", "TARGET", "LANES", "WAVES", "DEPTH", "PROFILE"}
"""Variables that a label names otherwise, or that change no result."""

Matrix = Rows | HbmTensor
Matrices = Sequence[Matrix]
Kernel = Callable[..., None]
References = Mapping[str, tuple[Matrix, np.ndarray]]
"""Results by a name for people, and what each would be in float64."""


class Draws(np.random.Generator):
    """Random numbers: what would be too large to be simulated is refused before it is drawn.

    Arguments:
        seed: as of :func:`numpy.random.default_rng`, whose numbers these are.
    """

    def __init__(self, seed: int):
        super().__init__(np.random.PCG64(seed))

    def normal(self, loc=0.0, scale=1.0, size=()) -> np.ndarray:
        """Return normal numbers; UsageError if they have more bytes than there is room for."""
        check_room(np.dtype(np.float64).itemsize * prod(np.atleast_1d(np.array(size, dtype=object))))
        return super().normal(loc, scale, size)


class Workbench(ABC):
    """A program under construction, and the memory that it starts from.

    Arguments:
        config: the machine's parameters.
        order, tile: of the program, see :class:`kernels.program.Program`.

    Attributes:
        program: what was appended.
        contents: what was placed, with its codes.
        runs: numbers of sections, in the order in which an image runs them; None: every one once.
    """

    runs: Sequence[int] | None = None

    def __init__(self, config: Config, order: str = Program.order, tile: int | None = None):
        with refusals():
            self.config, self.program = config, Program(config, order=order, tile=tile)
        self.contents: list[tuple[Matrix, np.ndarray]] = []

    @abstractmethod
    def room(self, name: str, shape: tuple[int, int], fmt: Format = FP32) -> Matrix:
        """Return a new matrix [rows, columns] that starts from zero."""

    @abstractmethod
    def vector(self, name: str, size: int, rows: int, fmt: Format = FP32) -> Matrix:
        """Return new parameters [size] that all of some rows share."""

    @abstractmethod
    def append(self, kernel: Kernel, results: Matrices, operands: Matrices, shared: Matrices = ()) -> None:
        """Append a kernel; for its arguments see :func:`kernels.tiling.streamed.streamed`."""

    @abstractmethod
    def _simulate(self, test: str, settings: Settings) -> tuple[np.ndarray, dict[str, object], dict[str, object]]:
        """Simulate and compare with golden; return the memory, lines for the report, and its other fields by name."""

    def place(self, name: str, values: np.ndarray, fmt: Format = FP32) -> tuple[Matrix, np.ndarray]:
        """Put numbers [rows, columns] into memory; return where they are, and as float64 what they are in `fmt`."""
        return self._fill(self.room(name, values.shape, fmt), values, fmt)

    def share(self, name: str, values: np.ndarray, rows: int, fmt: Format = FP32) -> tuple[Matrix, np.ndarray]:
        """Put parameters that `rows` rows share into memory; return what `place` does."""
        return self._fill(self.vector(name, len(values), rows, fmt), values, fmt)

    def _fill(self, matrix: Matrix, values: np.ndarray, fmt: Format) -> tuple[Matrix, np.ndarray]:
        codes = encode(values, fmt)
        self.contents.append((matrix, codes))
        return matrix, decode(codes, fmt)

    def _ideal_cycles(self) -> dict[str, int]:
        """Return for each engine how many cycles its instructions take if it never waits."""
        cycles = dict.fromkeys(ENGINES, 0)
        for one, times in self._executed():
            if one.engine.name.lower() in cycles:
                cycles[one.engine.name.lower()] += times * busy_cycles(one, self.config)
        return cycles

    def _executed(self) -> Iterator[tuple[Instruction, int]]:
        """Yield the instructions, and how often each is executed."""
        times = None if self.runs is None else Counter(self.runs)
        for entry in self.program.entries:
            yield entry.instruction, 1 if times is None else times[entry.section]

    def run(self, test: str, settings: Settings, references: References) -> Report:
        """Simulate the program and compare.

        Arguments:
            test: name of the TEST.
            settings: with its variables.
            references: what the results are compared with besides golden.
        """
        memory, extra, measured = self._simulate(test, settings)
        errors = {}
        for name, (matrix, reference) in references.items():
            codes = matrix.read(memory) if isinstance(matrix, Rows) else matrix.elements(memory)
            errors[f"error_of_{name}"] = error_figures(decode(np.ascontiguousarray(codes), matrix.format), reference)
        return Report(
            test=test,
            settings=dict(settings.values),
            ideal_cycles=max(self._ideal_cycles().values()),
            extra={"config": self.config.named, **extra, **errors},
            **measured,
        )

    def _label(self, settings: Settings) -> str:
        values, config = settings.values, self.config
        shape = "x".join(str(values[name]) for name in SIZES if values.get(name) is not None)
        own = (f"{name.lower()}{value}" for name, value in settings.told.items() if name not in ELSEWHERE)
        machine = settings.preset, f"{config.rows}x{config.columns}"
        parts = (*machine, values.get("DTYPE"), shape, *own, self._ran(settings))
        return "-".join(str(part) for part in parts if part)

    def _ran(self, settings: Settings) -> str | None:
        """Return who simulated."""
        return settings.sim


class CoreWorkbench(Workbench):
    """Matrices are in HBM; the program is an image that loads them tile by tile, computes and stores."""

    def _ideal_cycles(self) -> dict[str, int]:
        """Return for each engine how many cycles its instructions take if it never waits, of the tensor engine those in
        which a column enters the array."""
        columns = sum(one.columns * times for one, times in self._executed())
        return super()._ideal_cycles() | {"tensor": columns}

    def room(self, name: str, shape: tuple[int, int], fmt: Format = FP32) -> HbmTensor:
        """Return a new matrix [rows, columns] in HBM."""
        check_room(self.program.space.used(Storage.HBM) + prod(shape) * fmt.bits // 8)
        return self.program.space.hbm(name, fmt, shape)

    def vector(self, name: str, size: int, rows: int, fmt: Format = FP32) -> HbmTensor:
        """Return new parameters [size] in HBM."""
        return self.program.space.hbm(name, fmt, (size,))

    def append(self, kernel: Kernel, results: Matrices, operands: Matrices, shared: Matrices = ()) -> None:
        """Append a kernel from HBM to HBM."""
        streamed(self.program, kernel, results, operands, shared)

    def _simulate(self, test: str, settings: Settings) -> tuple[np.ndarray, dict[str, object], dict[str, object]]:
        label = f"core-{self._label(settings)}"
        with refusals():
            image = build_image(self.program, self.contents, runs=self.runs)
        profiled = bool(settings.profile)
        task = ImageTask(machine=self.config, images=[image], behaviour=hbm_of(settings), profiled=profiled)
        done = execute(task, settings, f"core-{test}-{label}", pictures=f"{test}-{label}")
        ideal = self._ideal_cycles()
        slowest = max(ideal, key=ideal.get)
        bound = {"roofline": roofline(slowest, ideal[slowest], self._moved(), self.config, settings.bandwidth)}
        run = done.outcome.parts[0]
        profile = profile_lines(settings, f"{test}-{label}", image, run)
        extra = {**bound, **summary(run, self.config), **done.files, **profile}
        measured = {"label": label, "hbm_cycles": hbm_cycles(self._moved(), self.config, settings.bandwidth)}
        return done.outcome.memories["hbm"][0], extra, measured | done.measured

    def _moved(self) -> int:
        """Return the bytes that the program reads from HBM and writes to it."""
        copied = ((times, part) for one, times in self._executed() for part in one.transfers)
        return sum(times * size for times, (_, storage, size) in copied if storage == Storage.HBM)


class ModelWorkbench(CoreWorkbench):
    """The image of the core, whose cycles the timing model tells; nothing is computed."""

    def _ran(self, settings: Settings) -> None:
        """Nobody simulated."""

    def run(self, test: str, settings: Settings, references: References) -> Report:
        """Predict the program; arguments as of :meth:`Workbench.run`."""
        with refusals():
            image = build_image(self.program, runs=self.runs)
        ideal = self._ideal_cycles()
        slowest = max(ideal, key=ideal.get)
        extra = {"roofline": roofline(slowest, ideal[slowest], self._moved(), self.config, settings.bandwidth)}
        found = predicted(image, settings)
        extra |= profile_lines(settings, f"{test}-{self._label(settings)}", image, found)
        hbm = hbm_cycles(self._moved(), self.config, settings.bandwidth)
        return modelled_report(test, self._label(settings), settings, found, ideal[slowest], extra, hbm)


class EngineWorkbench(Workbench):
    """Matrices are in SBUF from the start to the end.

    Attributes:
        sbuf: uint8 [partitions, bytes], as the run left it.
    """

    sbuf: np.ndarray

    def room(self, name: str, shape: tuple[int, int], fmt: Format = FP32) -> Rows:
        """Return a new matrix [rows, columns] in SBUF."""
        return place_rows(self.program.space, name, fmt, *shape, kept=True)

    def vector(self, name: str, size: int, rows: int, fmt: Format = FP32) -> Rows:
        """Return new parameters [size] in every partition of SBUF."""
        return replicate(self.program.space.sbuf(name, fmt, (size,), kept=True), rows)

    def append(self, kernel: Kernel, results: Matrices, operands: Matrices, shared: Matrices = ()) -> None:
        """Append a kernel on what is in SBUF."""
        kernel(self.program, *results, *(operand for operand in operands if operand not in results), *shared)

    def memories(self) -> tuple[np.ndarray, np.ndarray]:
        """Return SBUF and PSUM before the program runs, as much as it uses, uint8 [partitions, bytes]."""
        sizes = [max(4, -(-self.program.end(storage) // 4) * 4) for storage in (Storage.SBUF, Storage.PSUM)]
        sbuf = np.zeros((self.config.partitions, sizes[0]), np.uint8)
        for rows, codes in self.contents:
            rows.write(sbuf, codes)
        return sbuf, np.zeros((self.config.columns, sizes[1]), np.uint8)

    def _simulate(self, test: str, settings: Settings) -> tuple[np.ndarray, dict[str, object], dict[str, object]]:
        refuse_profile(settings)
        config = self.config
        records = [record_of(entry, config) for entry in self.program.entries]
        for engine in ENGINES:
            count = sum(record.engine == engine for record in records)
            if count > PROGRAM_DEPTH:
                raise UsageError(
                    f"{test} must have at most {PROGRAM_DEPTH:,} instructions of the {engine} engine, not {count:,}: "
                    "fewer rows or steps, or more lanes, make it shorter"
                )
        sbuf, psum = self.memories()
        instructions = [entry.instruction for entry in self.program.entries]
        program = ElementwiseProgram(instructions=instructions, records=records, sbuf=sbuf, psum=psum)
        outcome, differences, recorded = compare_program(program, ElementwiseDevice(config=config), settings, test)
        self.sbuf = outcome.memories["sbuf"]
        extra = {
            name: {engine: outcome.parts[engine].counters[name] for engine in ENGINES}
            for name in ("instructions", "busy", "elements")
        }
        refused = (
            f"the {engine} engine refused instruction {error.number}, rule {error.cause}"
            for engine, error in outcome.faults.items()
        )
        measured = {"compared": differences.compared, "mismatches": len(differences.places), "cycles": outcome.cycles}
        return self.sbuf, extra | recorded, {"label": self._label(settings), **measured, "failures": tuple(refused)}


def error_figures(values: np.ndarray, reference: np.ndarray) -> dict[str, str]:
    """Return how far results are from float64: the largest and the root-mean-square error, and relative ones."""
    error = np.abs(values - reference)
    size = np.abs(reference).max()
    relative = error[reference != 0] / np.abs(reference[reference != 0])
    return {
        "max": f"{error.max():.3g}",
        "rms": f"{np.sqrt(np.mean(error**2)):.3g}",
        "max over largest result": f"{error.max() / size if size else 0:.3g}",
        "median relative": f"{np.median(relative) if relative.size else 0:.3g}",
    }
