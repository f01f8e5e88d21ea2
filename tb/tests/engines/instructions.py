"""Jobs of random instructions for the vector or scalar engine; every byte of SBUF and PSUM is compared with golden."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.run.elementwise import ElementwiseJob
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import (
    RECORDED,
    SEED,
    Option,
    Settings,
    UsageError,
    choice,
    configuration_options,
    integer,
)
from neuroncore_rtl.spec.config import SCALAR_UNITS, VECTOR_UNITS
from neuroncore_rtl.spec.costs import step_cycles
from neuroncore_rtl.spec.formats import FORMATS, format_named
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program
from neuroncore_rtl.tb.tests.scenario import Jobs

__all__ = ["instruction_jobs", "instruction_options", "instruction_rows"]


def instruction_options(first: Option) -> tuple[Option, ...]:
    """Return the options of a TEST of random instructions."""
    return (
        first,
        choice("DTYPE", None, "number format of the tensors; default: all formats mixed", FORMATS),
        *configuration_options("tiny"),
        SEED,
        integer("N", None, "elements per lane; default: random", 1, 4096),
        integer("COUNT", 800, "instructions", 1, 4000),
        integer("STALL", 0, "random cycles per 256 in which each stream and memory port pauses", 0, 240),
        *RECORDED,
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


def instruction_rows(settings: Settings, result: Result) -> Report:
    """Return the report of a job of random instructions."""
    config, job = settings.config, result.job
    program, (engine,) = job.program, job.engines
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
