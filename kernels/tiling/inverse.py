"""Reciprocal on the engine that supports it."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, reciprocal

__all__ = ["inverse"]


def inverse(program: Program, dst: Tensor, a: Tensor) -> None:
    """Append dst = 1 / a.

    The vector engine rounds the result once. If its datapaths have no divider, the scalar engine computes the result,
    with an error of at most 4 ulp.
    """
    divides = "division" in program.config.vector_units
    program.append(reciprocal(dst, a) if divides else activation(dst, a, "reciprocal"))
