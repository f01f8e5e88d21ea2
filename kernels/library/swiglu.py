"""Gated layer of large language models (Shazeer, "GLU variants improve transformer", 2020)."""

from neuroncore_rtl.kernels.library.linear import linear_t
from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import Matrix
from neuroncore_rtl.spec.formats import BF16, FP32, Format

__all__ = ["swiglu_t"]


@located
def swiglu_t(
    program: Program,
    gate: Matrix,
    up: Matrix,
    x_t: Matrix | Tensor,
    *,
    name: str = "swiglu_t",
    fmt: Format | str = BF16,
) -> Rows:
    """Append and return silu(x gate) * (x up), [hidden, tokens], for consumers that contract over hidden units.

    Weights are [inputs, hidden], x_t is [inputs, tokens]. The factors are FP32.
    """
    if gate.shape != up.shape:
        raise ValueError(f"{name}: gate and up must have one shape, not {list(gate.shape)} and {list(up.shape)}")
    gates = linear_t(program, gate, x_t, function="silu", name="gate_t", fmt=FP32)
    return product(program, up, x_t, name=name, fmt=fmt, factors=gates)
