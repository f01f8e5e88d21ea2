"""Reciprocals, by the engine that has them."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, reciprocal

__all__ = ["inverse"]


def inverse(program: Program, dst: Tensor, a: Tensor) -> None:
    """Append dst = 1 / a: rounded once by the vector engine, or, of a machine whose vector lanes have no divider,
    within 4 units in the last place by the scalar engine."""
    divides = "division" in program.config.vector_units
    program.append(reciprocal(dst, a) if divides else activation(dst, a, "reciprocal"))
