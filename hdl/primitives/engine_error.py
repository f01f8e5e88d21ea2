"""How an engine says that it refused an instruction, or failed in it."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.cause import CAUSE_BITS, DETAIL_BITS

__all__ = ["DetailedError", "EngineError"]


class EngineError(data.Struct):
    """valid: an instruction was refused. cause: the `spec.isa.Rule` that it breaks. number: of instructions accepted
    before it since reset."""

    valid: unsigned(1)
    cause: unsigned(CAUSE_BITS)
    number: unsigned(32)


class DetailedError(data.Struct):
    """As :class:`EngineError`, of an engine whose instructions may also fail while they run.

    valid: an instruction was refused or failed. cause: a `spec.isa.Rule` or `spec.isa.Cause`. number: of instructions
    that the engine took before it since reset. detail: what the cause says of it.
    """

    valid: unsigned(1)
    cause: unsigned(CAUSE_BITS)
    number: unsigned(32)
    detail: unsigned(DETAIL_BITS)
