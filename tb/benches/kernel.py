"""Runs a kernel of element-wise instructions on both engines: every byte against golden, results against float64."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import numpy as np

from neuroncore_rtl.golden.arith import decode, round_fp32
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.rows import Rows, place_rows, replicate
from neuroncore_rtl.kernels.program.sequence import Sequence
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.tb.benches.instructions import Differences
from neuroncore_rtl.tb.check.costs import step_cycles
from neuroncore_rtl.tb.check.execution import Program, expected_memories, record_of
from neuroncore_rtl.tb.harness.elementwise import ENGINES, PROGRAM_DEPTH, design, run_program
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.report import Report, progress, shown
from neuroncore_rtl.tb.sim.settings import DEPTH, SEED, SIM, WAVES, Option, Settings, UsageError, configuration_options
from neuroncore_rtl.tb.view.waves import waveform, write_save_file

__all__ = ["COLUMNS", "FLOATS", "ROWS", "STALL", "Workbench", "encode", "kernel_options", "refusals"]

FLOATS = ("fp32", "tf32", "bf16", "fp16")
"""Formats that kernels are run with."""

ROWS = Option(name="M", type=int, default=40, help="rows of the matrix, a partition each", minimum=1, maximum=65536)
COLUMNS = Option(name="N", type=int, default=96, help="columns of the matrix", minimum=1, maximum=65535)
STALL = Option(
    name="STALL",
    type=int,
    default=0,
    help="every stream and memory port pauses in so many of 256 cycles",
    minimum=0,
    maximum=192,
)


def kernel_options(*options: Option) -> tuple[Option, ...]:
    """Return a kernel's options between those of its shape and format and those that all benches have."""
    dtype = Option(name="DTYPE", type=str, default="bf16", help="number format of the tensors", choices=FLOATS)
    return (ROWS, COLUMNS, dtype, *options, *configuration_options("tiny"), SEED, STALL, SIM, WAVES, DEPTH)


def encode(values: np.ndarray, fmt: Format) -> np.ndarray:
    """Return the codes of numbers, to nearest even by way of FP32."""
    if not fmt.is_float:
        return np.asarray(values).astype(np.int64).astype(f"uint{fmt.bits}")
    return round_fp32(np.asarray(values, np.float32).view(np.uint32), fmt, "rne", None)


@contextmanager
def refusals() -> Iterator[None]:
    """Report what a kernel refuses, such as tensors that do not fit, as what it is: a mistake of the user's."""
    try:
        yield
    except ValueError as refusal:
        raise UsageError(str(refusal)) from refusal


@dataclass
class Workbench:
    """The program of a kernel under construction, and the memory it starts from.

    Arguments:
        config: the machine's parameters.
    """

    config: Config
    space: Allocator = field(init=False)
    program: Sequence = field(init=False)
    contents: list[tuple[Rows, np.ndarray]] = field(init=False, default_factory=list)

    def __post_init__(self):
        self.space = Allocator(self.config)
        self.program = Sequence(self.config)

    def place(self, name: str, values: np.ndarray, fmt: Format = FP32) -> tuple[Rows, np.ndarray]:
        """Put numbers [rows, columns] into SBUF; return where they are, and as float64 what they are in `fmt`."""
        return self._fill(place_rows(self.space, name, fmt, *values.shape), values, fmt)

    def replicate(self, name: str, values: np.ndarray, rows: int, fmt: Format = FP32) -> tuple[Rows, np.ndarray]:
        """Put one row of numbers into every partition; return where it is, and as float64 what it is in `fmt`."""
        return self._fill(replicate(self.space, name, fmt, rows, len(values)), values, fmt)

    def _fill(self, rows: Rows, values: np.ndarray, fmt: Format) -> tuple[Rows, np.ndarray]:
        codes = encode(values, fmt)
        self.contents.append((rows, codes))
        return rows, decode(codes, fmt)

    def memories(self) -> tuple[np.ndarray, np.ndarray]:
        """Return SBUF and PSUM before the program runs, as much as it uses, uint8 [partitions, bytes]."""
        sizes = [max(4, -(-self.space.peak(storage) // 4) * 4) for storage in Storage]
        sbuf = np.zeros((self.config.partitions, sizes[Storage.SBUF]), np.uint8)
        for rows, codes in self.contents:
            rows.write(sbuf, codes)
        return sbuf, np.zeros((self.config.columns, sizes[Storage.PSUM]), np.uint8)

    def run(
        self,
        test: str,
        settings: Settings,
        used: Mapping[str, object],
        references: Mapping[str, tuple[Rows, np.ndarray]],
    ) -> tuple[Report, np.ndarray]:
        """Simulate the program and compare; return the report, and SBUF at the end.

        Arguments:
            test: name of the TEST.
            settings: with PRESET, SEED, STALL, SIM, WAVES, DEPTH.
            used: further settings for the report, by name.
            references: by a name for people, a result and what it would be in float64.
        """
        config, waves = self.config, waveform(test) if settings.waves else None
        for engine in ENGINES:
            count = sum(entry.engine == engine for entry in self.program.entries)
            if count > PROGRAM_DEPTH:
                raise UsageError(
                    f"{test} must have at most {PROGRAM_DEPTH:,} instructions of the {engine} engine, not {count:,}: "
                    "fewer rows or steps, or more lanes, make it shorter"
                )
        records = [record_of(entry, config) for entry in self.program.entries]
        sbuf, psum = self.memories()
        instructions = [entry.instruction for entry in self.program.entries]
        program = Program(instructions=instructions, records=records, sbuf=sbuf, psum=psum)
        with progress(f"golden: {len(records):,} instructions"):
            expected = expected_memories(program.instructions, program.sbuf, program.psum, config)
        built = simulation.build(design(config), settings.sim, waves=waves is not None)
        with progress(f"{settings.sim}: running {len(records):,} instructions"):
            outcome = run_program(
                built, records, program.sbuf, program.psum, config, stall=settings.stall, seed=settings.seed,
                waves=waves, waves_levels=settings.depth,
            )  # fmt: skip
        differences = Differences(program, outcome, expected, config)
        for line in differences.lines():
            print(line)
        steps = {engine: 0 for engine in ENGINES}
        for entry in self.program.entries:
            steps[entry.engine] += step_cycles(entry.instruction, config)
        errors = {
            f"error_of_{name}": error_figures(decode(rows.read(outcome.sbuf), rows.tiles[0].format), reference)
            for name, (rows, reference) in references.items()
        }
        shape = "x".join(str(used[name]) for name in ("M", "N") if name in used)
        parts = (settings.preset, f"{config.rows}x{config.columns}", used.get("DTYPE"), shape, settings.sim)
        report = Report(
            test=test,
            label="-".join(str(part) for part in parts if part),
            settings={**settings.values, **used},
            compared=differences.compared,
            mismatches=len(differences.places),
            cycles=outcome.cycles,
            ideal_cycles=max(steps.values()),
            extra={
                "config": asdict(config),
                "instructions": dict(outcome.retired),
                "busy": {engine: outcome.counters[engine]["busy"] for engine in ENGINES},
                "elements": {engine: outcome.counters[engine]["elements"] for engine in ENGINES},
                **errors,
                **({"waveform": shown(write_save_file(waves))} if waves else {}),
            },
            failures=tuple(
                f"the {engine} engine refused instruction {error[1]}, rule {error[0]}"
                for engine, error in outcome.errors.items()
                if error
            ),
        )
        return report, outcome.sbuf


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
