"""TEST=vector and TEST=activation: random instructions of one engine; SBUF and PSUM are compared with golden.

The errors of the activation functions are compared with mpmath.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import mpmath
import numpy as np
from mpmath import mp, mpf

from neuroncore_rtl.kernels.program.instructions import activation
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.run import settings as variables
from neuroncore_rtl.run.elementwise import ElementwiseJob, ElementwiseProgram
from neuroncore_rtl.run.harness.engines.elementwise import EngineRecord
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Option, Settings, UsageError, choice, integer
from neuroncore_rtl.spec.config import SCALAR_UNITS, VECTOR_UNITS, Config
from neuroncore_rtl.spec.costs import step_cycles
from neuroncore_rtl.spec.formats import FORMATS, FP32, format_named
from neuroncore_rtl.spec.functions import FUNCTIONS, Function
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, Opcode
from neuroncore_rtl.tb.check.oracles.functions import ALPHA, DIGITS, POSITIVE, exact
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TESTS", "error_job", "errors_by_name", "instruction_jobs", "reference_errors"]

SAMPLES = 1024  # arguments of each function; their results are compared with mpmath
_BY_NAME = {opcode.name.lower(): opcode for opcode in sorted(VECTOR_OPCODES)}


def _options(first: Option) -> tuple[Option, ...]:
    return (
        first,
        choice("DTYPE", None, "number format of the tensors; default: all formats mixed", FORMATS),
        *variables.configuration_options("tiny"),
        variables.SEED,
        integer("N", None, "elements per lane; default: random", 1, 4096),
        integer("COUNT", 800, "instructions", 1, 4000),
        integer("STALL", 0, "random cycles per 256 in which each stream and memory port pauses", 0, 240),
        *variables.RECORDED,
    )


def instruction_jobs(settings: Settings, chosen: str, opcodes: Sequence[Opcode], **drawn: object) -> Jobs:
    """Yield the job of COUNT random instructions of one engine; UsageError if the lanes have no unit for them."""
    config = settings.config
    engine = "scalar" if Opcode.ACTIVATE in opcodes else "vector"
    formats = tuple(FORMATS.values()) if settings.dtype is None else (format_named(settings.dtype),)
    choices = Choices(opcodes=tuple(opcodes), formats=formats, elements=settings.n, **drawn).on(config)
    if not (choices.opcodes and choices.functions):
        units = VECTOR_UNITS if engine == "vector" else SCALAR_UNITS
        absent = ", ".join(f"{engine}_{unit}" for unit in units if not getattr(config, f"{engine}_{unit}"))
        raise UsageError(f"{chosen} must select operations that this machine's lanes have; these units are 0: {absent}")
    program = random_elementwise_program(np.random.default_rng(settings.seed), config, settings.count, choices)
    yield ElementwiseJob(config=config, program=program, name="", engines=(engine,), stall=settings.stall)


def _vector_rows(settings: Settings, results: Sequence[Result]) -> Report:
    result, config = results[0], settings.config
    program, (engine,) = result.job.program, result.job.engines
    pairs = ((result.expected.memories[name], getattr(program, name)) for name in ("sbuf", "psum"))
    return Report(
        cycles=result.cycles,
        ideal_cycles=sum(step_cycles(instruction, config) for instruction in program.instructions),
        rows={
            "changed": sum(int((wanted != before).sum()) for wanted, before in pairs),
            "instructions": dict(sorted(Counter(i.opcode.name.lower() for i in program.instructions).items())),
            "config": config.named,
            "counters": dict(result.outcome.parts[engine].counters),
            **result.files,
        },
    )


def _arguments(rng: np.random.Generator, lanes: int, elements: int) -> np.ndarray:
    size = np.exp2(rng.uniform(-24, 8, (lanes, elements)))
    near = rng.uniform(-8, 8, (lanes, elements))
    chosen = np.where(rng.random((lanes, elements)) < 0.5, near, size * rng.choice([-1, 1], size.shape))
    return chosen.astype(np.float32)


def error_job(functions: list[Function], config: Config, seed: int = 1, samples: int = SAMPLES) -> ElementwiseJob:
    """Return the job that evaluates each function in FP32 over the same `samples` arguments, or as many as fit SBUF."""
    lanes = config.partitions
    elements = min(-(-samples // lanes), config.sbuf_bytes // (4 * (1 + len(functions))))
    z = _arguments(np.random.default_rng(seed), lanes, elements)
    tensors = Tensor(name="z, results", format=FP32, address=0, partitions=lanes, shape=(1 + len(functions), elements))
    sbuf = np.zeros((lanes, 4 * tensors.size), np.uint8)
    sbuf[:, : 4 * elements] = z.astype("<f4").view(np.uint8)
    instructions = [
        replace(activation(tensors[:, number], tensors[:, 0], function.name, alpha=ALPHA), overlap=True)
        for number, function in enumerate(functions, 1)
    ]
    records = [EngineRecord(engine="scalar", word=one.encode(config)) for one in instructions]
    psum = np.zeros((config.columns, config.psum_bytes), np.uint8)
    program = ElementwiseProgram(instructions=instructions, records=records, sbuf=sbuf, psum=psum)
    return ElementwiseJob(config=config, program=program, engines=("scalar",), subject=(functions, z))


class ReferenceErrors:
    """Largest errors of finite results, each with its argument.

    The error `ulp` is in last places of FP32 at the exact value, `relative` is for normal and `absolute` for exact
    values below 1.
    """

    def __init__(self):
        self.compared = 0
        self.ulp = self.relative = self.absolute = (0.0, 0.0)

    def add(self, z: float, result: float, wanted: mpmath.mpf) -> None:
        self.compared += 1
        difference = abs(mpf(result) - wanted)
        size = abs(wanted)
        exponent = max(int(mp.floor(mp.log(size, 2))) if size else -126, -126)
        self.ulp = max(self.ulp, (float(difference / mpf(2) ** (exponent - 23)), z))
        if size >= mpf(2) ** -126:
            self.relative = max(self.relative, (float(difference / size), z))
        if size < 1:
            self.absolute = max(self.absolute, (float(difference), z))

    def rows(self) -> dict[str, float]:
        """Return the errors for a report; `at` is the argument of `ulp`."""
        ulp, at = self.ulp
        return {"ulp": ulp, "at": at, "relative": self.relative[0], "absolute_below_1": self.absolute[0]}


def reference_errors(name: str, z: np.ndarray, results: np.ndarray) -> ReferenceErrors:
    """Return the errors of `results` for f(z); overflows and undefined results are not compared."""
    found = ReferenceErrors()
    for argument, result in zip(z.reshape(-1).tolist(), results.reshape(-1).tolist(), strict=True):
        defined = math.isfinite(argument) and argument != 0 and (argument > 0 or name not in POSITIVE)
        if defined and math.isfinite(result):
            with mp.workdps(DIGITS):
                found.add(argument, result, exact(name, argument))
    return found


def errors_by_name(result: Result) -> dict[str, ReferenceErrors]:
    """Return the errors of an `error_job` by function."""
    functions, z = result.job.subject
    words = result.memories["sbuf"].view("<u4").reshape(len(z), 1 + len(functions), -1)[:, 1:]
    return {
        function.name: reference_errors(function.name, z, np.ascontiguousarray(words[:, n]).view("<f4"))
        for n, function in enumerate(functions)
    }


def _vector_jobs(settings: Settings) -> Jobs:
    opcodes = list(_BY_NAME.values()) if settings.op == "all" else [_BY_NAME[settings.op]]
    return instruction_jobs(settings, settings.op, opcodes)


def _activation_jobs(settings: Settings) -> Jobs:
    chosen = list(FUNCTIONS.values()) if settings.func == "all" else [FUNCTIONS[settings.func]]
    codes = tuple(function.code for function in chosen)
    yield from instruction_jobs(settings, settings.func, [Opcode.ACTIVATE], functions=codes)
    possible = Choices(functions=codes).on(settings.config).functions
    functions = [function for function in chosen if function.code in possible]
    yield error_job(functions, settings.config, settings.seed)


def _activation_rows(settings: Settings, results: Sequence[Result]) -> Report:
    found = _vector_rows(settings, results)
    errors = {f"error_of_{name}": largest.rows() for name, largest in errors_by_name(results[1]).items()}
    return replace(found, rows={**found.rows, **errors})


_VECTOR = Scenario(
    name="vector",
    summary="random instructions of the vector engine, of one operation or all, every byte of memory against golden",
    options=_options(choice("OP", "all", "operation", ("all", *_BY_NAME))),
    jobs=_vector_jobs,
    rows=_vector_rows,
)

_ACTIVATION = Scenario(
    name="activation",
    summary="random activations of one function or all, every byte against golden; errors against mpmath",
    options=_options(choice("FUNC", "all", "function", ("all", *FUNCTIONS))),
    jobs=_activation_jobs,
    rows=_activation_rows,
)

TESTS = (_VECTOR, _ACTIVATION)
