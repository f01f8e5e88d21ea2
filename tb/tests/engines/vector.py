"""TEST=vector: random instructions of the vector engine; every byte of SBUF and PSUM is compared with golden."""

from neuroncore_rtl.run.settings import Settings, choice
from neuroncore_rtl.spec.isa import VECTOR_OPCODES
from neuroncore_rtl.tb.tests.engines.instructions import instruction_jobs, instruction_options, instruction_rows
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST"]

_BY_NAME = {opcode.name.lower(): opcode for opcode in sorted(VECTOR_OPCODES)}


def _jobs(settings: Settings) -> Jobs:
    opcodes = list(_BY_NAME.values()) if settings.op == "all" else [_BY_NAME[settings.op]]
    return instruction_jobs(settings, settings.op, opcodes)


TEST = Scenario(
    name="vector",
    summary="random instructions of the vector engine, of one operation or all, every byte of memory against golden",
    options=instruction_options(choice("OP", "all", "operation", ("all", *_BY_NAME))),
    jobs=_jobs,
    rows=lambda settings, results: instruction_rows(settings, results[0]),
)
