"""TEST=activation: random activations, with every byte compared with golden, and the functions' errors by mpmath."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neuroncore_rtl.kernels.program.instructions import activation
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.run.elementwise import ElementwiseJob, ElementwiseProgram
from neuroncore_rtl.run.harness.engines.elementwise import EngineRecord
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings, choice
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import FUNCTIONS, Function
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.check.references import ReferenceErrors, reference_errors
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from neuroncore_rtl.tb.tests.engines.instructions import instruction_jobs, instruction_options, instruction_rows
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST", "error_job", "errors_by_name"]

SAMPLES = 1024  # arguments of each function; their results are compared with mpmath
ALPHA = 0.1


def _arguments(rng: np.random.Generator, lanes: int, elements: int) -> np.ndarray:
    size = np.exp2(rng.uniform(-24, 8, (lanes, elements)))
    near = rng.uniform(-8, 8, (lanes, elements))
    return np.where(rng.random((lanes, elements)) < 0.5, near, size * rng.choice([-1, 1], size.shape)).astype(
        np.float32
    )


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


def errors_by_name(result: Result) -> dict[str, ReferenceErrors]:
    """Return the errors of an `error_job` by function."""
    functions, z = result.job.subject
    words = result.memories["sbuf"].view("<u4").reshape(len(z), 1 + len(functions), -1)[:, 1:]
    alpha = float(np.float32(ALPHA))
    return {
        function.name: reference_errors(function.name, z, np.ascontiguousarray(words[:, n]).view("<f4"), alpha)
        for n, function in enumerate(functions)
    }


def _functions(settings: Settings) -> list[Function]:
    return list(FUNCTIONS.values()) if settings.func == "all" else [FUNCTIONS[settings.func]]


def _jobs(settings: Settings) -> Jobs:
    codes = tuple(function.code for function in _functions(settings))
    yield from instruction_jobs(settings, settings.func, [Opcode.ACTIVATE], functions=codes)
    possible = Choices(functions=codes).on(settings.config).functions
    functions = [function for function in _functions(settings) if function.code in possible]
    yield error_job(functions, settings.config, settings.seed)


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    found = instruction_rows(settings, results[0])
    errors = {f"error_of_{name}": largest.rows() for name, largest in errors_by_name(results[1]).items()}
    return replace(found, rows={**found.rows, **errors})


TEST = Scenario(
    name="activation",
    summary="random activations of one function or all, every byte against golden; errors against mpmath",
    options=instruction_options(choice("FUNC", "all", "function", ("all", *FUNCTIONS))),
    jobs=_jobs,
    rows=_rows,
)
