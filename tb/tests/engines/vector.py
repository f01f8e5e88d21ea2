"""TEST=vector: random instructions of the vector engine, every byte of SBUF and PSUM against golden."""

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Command, Settings, choice
from neuroncore_rtl.spec.isa import VECTOR_OPCODES
from neuroncore_rtl.tb.tests.engines.instructions import instruction_options, run_instructions

__all__ = ["TEST"]

_BY_NAME = {opcode.name.lower(): opcode for opcode in sorted(VECTOR_OPCODES)}


def _run(settings: Settings) -> Report:
    opcodes = list(_BY_NAME.values()) if settings.op == "all" else [_BY_NAME[settings.op]]
    return run_instructions("vector", settings.op, settings, opcodes)[0]


TEST = Command(
    name="vector",
    summary="random instructions of the vector engine, of one operation or all, every byte of memory against golden",
    options=instruction_options(choice("OP", "all", "operation", ("all", *_BY_NAME))),
    run=_run,
)
