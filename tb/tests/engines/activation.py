"""TEST=activation: random activations against golden, every byte, and the functions' errors against mpmath."""

from dataclasses import replace

import numpy as np

from neuroncore_rtl.kernels.program.instructions import activation
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.run.elementwise import expected_memories
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice, ElementwiseWork, EngineRecord
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Command, Settings, choice
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import FUNCTIONS, Function
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.check.references import Errors, errors
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from neuroncore_rtl.tb.tests.engines.instructions import instruction_options, run_instructions

__all__ = ["TEST", "measure_errors"]

SAMPLES = 1024
"""Arguments of each function whose results are compared with mpmath."""

ALPHA = 0.1
"""The parameter of the functions that have one."""


def _arguments(rng: np.random.Generator, lanes: int, elements: int) -> np.ndarray:
    """Return float32 arguments [lanes, elements], of every size from 2**-24 to 2**8 and of either sign."""
    size = np.exp2(rng.uniform(-24, 8, (lanes, elements)))
    near = rng.uniform(-8, 8, (lanes, elements))
    return np.where(rng.random((lanes, elements)) < 0.5, near, size * rng.choice([-1, 1], size.shape)).astype(
        np.float32
    )


def measure_errors(
    functions: list[Function], config: Config, *, sim: str = "verilator", seed: int = 1, samples: int = SAMPLES
) -> tuple[dict[str, Errors], int, int]:
    """Run each function over the same arguments, FP32 in and out.

    Arguments:
        functions: which.
        config: the machine's parameters.
        sim: the simulator.
        seed: of the arguments.
        samples: arguments, over all lanes; fewer where SBUF has no room for their results.

    Returns:
        The errors by the functions' names, the results compared with golden, and how many of them differed.
    """
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
    work = ElementwiseWork(program=records, sbuf=sbuf, psum=psum)
    doing = f"running {len(records)} functions over {z.size:,} arguments"
    outcome = run(ElementwiseDevice(config=config, engines=("scalar",)), work, sim=sim, doing=doing)
    expected, _ = expected_memories(instructions, sbuf, psum, config)
    words, wanted = (
        memory.view("<u4").reshape(lanes, *tensors.shape)[:, 1:] for memory in (outcome.memories["sbuf"], expected)
    )
    found = {
        function.name: errors(function.name, z, np.ascontiguousarray(words[:, n]).view("<f4"), float(np.float32(ALPHA)))
        for n, function in enumerate(functions)
    }
    return found, words.size, int((words != wanted).sum())


def _run(settings: Settings) -> Report:
    functions = list(FUNCTIONS.values()) if settings.func == "all" else [FUNCTIONS[settings.func]]
    codes = tuple(function.code for function in functions)
    report, *_ = run_instructions("activation", settings.func, settings, [Opcode.ACTIVATE], functions=codes)
    possible = Choices(functions=codes).on(settings.config).functions
    functions = [function for function in functions if function.code in possible]
    found, compared, differ = measure_errors(functions, settings.config, sim=settings.sim, seed=settings.seed)
    extra = report.extra | {f"error_of_{name}": str(largest) for name, largest in found.items()}
    return replace(report, compared=report.compared + compared, mismatches=report.mismatches + differ, extra=extra)


TEST = Command(
    name="activation",
    summary="random activations of one function or all, every byte against golden; errors against mpmath",
    options=instruction_options(choice("FUNC", "all", "function", ("all", *FUNCTIONS))),
    run=_run,
)
