"""Beats of bytes, and words of announcements."""

import random

import numpy as np

from neuroncore_rtl.spec.isa import collective as isa

__all__ = ["beats_of_bytes", "field_at", "matching_signatures"]


def beats_of_bytes(content: bytes, size: int, rng: np.random.Generator | None = None) -> list[int]:
    """Return bytes as beats of `size` bytes; the last beat is padded with random bytes, or with zeros without `rng`."""
    content += (rng.bytes if rng else bytes)(-len(content) % size)
    return [int.from_bytes(content[n : n + size], "little") for n in range(0, len(content), size)]


def matching_signatures(py_rng: random.Random, kind: isa.CollectiveKind) -> tuple[int, int]:
    """Return a random announcement of a collective of this kind, and the one that the other core must announce."""
    word = py_rng.getrandbits(isa.SIGNATURE_BITS) >> 3 << 3
    return word | kind, word | isa.OTHER_SIDE.get(kind, kind)


def field_at(kind: isa.CollectiveKind, bit: int) -> int:
    """Return 1 + the index of the announcement's field with this bit; 0 if collectives of this kind ignore the bit."""
    for place, (name, width) in enumerate(isa.SIGNATURE_FIELDS, 1):
        if name in isa.SIGNATURE_USES[kind] and 0 <= bit - isa.SIGNATURE_OFFSETS[name] < width:
            return place
    return 0
