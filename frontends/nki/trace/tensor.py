"""Tensors as kernels use them: views with operators. `a + b` is `nl.add(a, b)`; `tile[...] = value` writes.

A view used as an index holds numbers in SBUF; an index expression may be added to it.
"""

from collections.abc import Callable

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numbers import Moved
from neuroncore_rtl.frontends.nki.indices.numpy_calls import NumpyCalls
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.trace.recording import recording

__all__ = ["NkiTensor"]


def _operator(name: str, swapped: bool = False):
    def operate(self, other):
        if isinstance(other, Affine) and name == "add":
            return Moved(other, self)  # an index expression plus a number in memory
        calls = recording().calls
        return calls[name](other, self) if swapped else calls[name](self, other)

    return operate


class NkiTensor(View, NumpyCalls):
    """A tensor in HBM, SBUF or PSUM, or a view of one."""

    def _elementwise(self, name: str) -> Callable | None:
        return recording().calls.get(name)

    def __repr__(self) -> str:
        return f"tensor {self.name} of {self.dtype} {self.shape}"

    def astype(self, dtype):
        """Return a copy of another type."""
        return recording().calls["copy"](self, dtype=dtype)

    def __setitem__(self, key, value) -> None:
        recording().calls["assign"](self[key], value)

    def __iadd__(self, other):
        return recording().calls["accumulate"](self, other)

    @from_kernel
    def __bool__(self) -> bool:
        """Return True for a tensor in HBM, since kernels test for optional arguments so.

        ValueError for a tensor on chip, since its value is not known while the kernel is recorded.
        """
        if not self.allocation.memory.on_chip:
            return True
        rule = "a condition must be known while the kernel is recorded, not one on a tensor"
        raise ValueError(f"{self.name}: {rule}: use nl.where, nl.minimum, nl.maximum, or & and | of comparisons")

    @from_kernel
    def __float__(self, *digits: object) -> float:
        rule = "a number of Python must be known while the kernel is recorded, not one in a tensor"
        raise ValueError(f"{self.name}: {rule}")

    __int__ = __complex__ = __round__ = __index__ = __float__

    def __eq__(self, other):
        """Compare element by element; `tensor == None` is False, since kernels test for optional arguments."""
        return False if other is None else recording().calls["equal"](self, other)

    def __ne__(self, other):
        return True if other is None else recording().calls["not_equal"](self, other)


for _symbol, _name in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"), ("mod", "mod"), ("pow", "power"),
    ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("lshift", "left_shift"),
    ("rshift", "right_shift"),
):  # fmt: skip
    setattr(NkiTensor, f"__{_symbol}__", _operator(_name))
    setattr(NkiTensor, f"__r{_symbol}__", _operator(_name, swapped=True))
for _symbol, _name in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")):
    setattr(NkiTensor, f"__{_symbol}__", _operator(_name))
for _symbol, _name in (("abs", "abs"), ("neg", "negative"), ("invert", "invert")):
    setattr(NkiTensor, f"__{_symbol}__", lambda self, name=_name: recording().calls[name](self))
