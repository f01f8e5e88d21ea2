"""The number of an element in its tensor, which decides its random words."""

from dataclasses import dataclass, replace

from neuroncore_rtl.spec.isa.access import drop_step

__all__ = ["Index"]


@dataclass(frozen=True, kw_only=True)
class Index:
    """The number of an element in its tensor, an affine function of its place in the instruction.

    base + lane * partition + the sum of index[d] * steps[d], modulo 2**64 (read as INT32 by IOTA and AFFINE_SELECT,
    modulo 2**32). With (seed, stream) it decides the element's random words, so it must not depend on how the tensor
    was cut into instructions.

    Arguments:
        base: 64 bits, may be negative.
        partition: from one lane to the next, 32 bits signed.
        steps: for each dimension of the shape, outermost first, 32 bits signed.
    """

    base: int = 0
    partition: int = 0
    steps: tuple[int, ...] = ()

    def without(self, d: int) -> "Index | None":
        """Return it without a dimension; None if that has a meaning."""
        left = drop_step(self.steps, d)
        return None if left is None else replace(self, steps=left)
