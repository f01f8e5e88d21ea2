"""Error reports of the engines."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.cause import CAUSE_BITS, DETAIL_BITS

__all__ = ["DetailedError", "EngineError"]


class EngineError(data.Struct):
    """First refused instruction of an engine.

    Fields:
        valid: an instruction was refused.
        cause: the `spec.isa.Rule` that it breaks.
        number: instructions accepted before it since reset.
    """

    valid: unsigned(1)
    cause: unsigned(CAUSE_BITS)
    number: unsigned(32)


class DetailedError(data.Struct):
    """Error of an engine that also detects failures during execution.

    Fields:
        valid: an instruction was refused or failed.
        cause: a `spec.isa.Rule` or `spec.isa.Cause`.
        number: instructions accepted before it since reset.
        detail: further information, by cause.
    """

    valid: unsigned(1)
    cause: unsigned(CAUSE_BITS)
    number: unsigned(32)
    detail: unsigned(DETAIL_BITS)
