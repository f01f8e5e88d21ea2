"""`nki.typing.scalar`: a register loaded from a one-element tensor, accepted by `range` in a kernel's file."""

import builtins

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.loops import LoopRegister, dynamic_range, element_of, loop_register
from neuroncore_rtl.frontends.nki.trace.recording import recording

__all__ = ["BUILTINS", "Scalar"]


class Scalar(LoopRegister):
    """Register loaded from a one-element tensor, usable as a bound of `range`; as an annotation it means any number."""

    @from_kernel
    def __init__(self, number: View):
        current = recording()
        current.flush()
        register = current.program.flow.register()
        current.program.flow.load(register, element_of(current, number))
        super().__init__(register, loop_register(current, register).word)

    def __class_getitem__(cls, key):
        return cls


class _RangeType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, range)


class _Range(metaclass=_RangeType):
    """Stand-in for Python's `range`, which makes a dynamic loop if a bound is a `Scalar`."""

    def __new__(cls, *bounds):
        return dynamic_range(*bounds) if any(isinstance(bound, Scalar) for bound in bounds) else range(*bounds)


BUILTINS = {**vars(builtins), "range": _Range}
