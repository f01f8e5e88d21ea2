"""What kernels hold: views with operators. `a + b` is `nl.add(a, b)`, and `tile[...] = value` writes.

A view in an index is numbers in SBUF, to which an index expression may be added.
"""

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numbers import Moved
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.trace.recording import recording

__all__ = ["NkiTensor"]


def _operator(name: str, swapped: bool = False):
    def operate(self, other):
        if isinstance(other, Affine) and name == "add":
            return Moved(other, self)  # an index, part of which is in memory
        calls = recording().calls
        return calls[name](other, self) if swapped else calls[name](self, other)

    return operate


class NkiTensor(View):
    """A tensor of HBM, SBUF or PSUM, or a view of one."""

    def __setitem__(self, key, value) -> None:
        """Write to a part: the result of a call goes there at once, anything else is copied."""
        recording().calls["assign"](self[key], value)

    def __iadd__(self, other):
        """Add to it: products add to what is in PSUM, as they are summed up."""
        return recording().calls["accumulate"](self, other)

    @from_kernel
    def __bool__(self) -> bool:
        """Return that there is one, as kernels ask of an argument that may be None; results have no truth yet."""
        if not self.allocation.memory.on_chip:
            return True
        raise ValueError(f"{self.name}: a condition must be known while the kernel is recorded, not one on a tensor")

    def __eq__(self, other):
        """Compare element by element; a tensor is never None, as kernels ask of an argument."""
        return False if other is None else recording().calls["equal"](self, other)

    def __ne__(self, other):
        return True if other is None else recording().calls["not_equal"](self, other)

    def __neg__(self):
        return recording().calls["negative"](self)

    def __invert__(self):
        return recording().calls["invert"](self)


for _symbol, _name in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"), ("mod", "mod"),
    ("pow", "power"),
    ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("lshift", "left_shift"),
    ("rshift", "right_shift"),
):  # fmt: skip
    setattr(NkiTensor, f"__{_symbol}__", _operator(_name))
    setattr(NkiTensor, f"__r{_symbol}__", _operator(_name, swapped=True))
for _symbol, _name in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")):
    setattr(NkiTensor, f"__{_symbol}__", _operator(_name))
