"""How an engine says that it refused an instruction."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["EngineError"]


class EngineError(data.Struct):
    """valid: an instruction was refused. cause: the `spec.isa.Rule` that it breaks. number: of instructions accepted
    before it since reset."""

    valid: unsigned(1)
    cause: unsigned(8)
    number: unsigned(32)
