"""Element numbers, which determine random words."""

from dataclasses import dataclass, replace

from neuroncore_rtl.spec.isa.access import drop_step

__all__ = ["Index"]


@dataclass(frozen=True, kw_only=True)
class Index:
    """Number of an element in its tensor.

    The number is base + p * partition + the sum of index[d] * steps[d], modulo 2**64; p counts the partitions of the
    access from 0. IOTA and AFFINE_SELECT use the number modulo 2**32, as INT32. With (seed, stream) it determines the
    element's random words.

    Arguments:
        base: number of the first element, 64 bits; may be negative.
        partition: distance from one partition to the next, 32 bits signed.
        steps: distance from one index to the next in each dimension, outermost first, 32 bits signed.
    """

    base: int = 0
    partition: int = 0
    steps: tuple[int, ...] = ()

    def without(self, d: int) -> "Index | None":
        """Return a copy without dimension `d`; None if the step of that dimension is not 0."""
        left = drop_step(self.steps, d)
        return None if left is None else replace(self, steps=left)
