"""Random bits in fields that mean nothing, so that hardware which looks at them is noticed."""

from collections.abc import Set

import numpy as np

from neuroncore_rtl.spec.isa.fields import Layout

__all__ = ["garbled"]


def garbled(
    rng: np.random.Generator, layout: Layout, values: dict[str, int], unused: Set[str], signed: Set[str] = frozenset()
) -> dict[str, int]:
    """Return the values of a layout's fields with random ones in those that are not used.

    Arguments:
        rng: decides them.
        layout: the fields.
        values: of every field.
        unused: fields that mean nothing.
        signed: fields in two's complement.
    """
    changed = dict(values)
    for name, width in layout:
        if name in unused:
            bits = int.from_bytes(rng.bytes(8), "little") & ((1 << width) - 1)
            changed[name] = bits - (bits >> (width - 1) << width) if name in signed else bits
    return changed
