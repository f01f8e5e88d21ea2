"""Beats of bytes, and words of announcements."""

import numpy as np

from neuroncore_rtl.spec.isa import collective as isa

__all__ = ["beats_of_bytes", "field_at", "other_side", "with_kind"]


def beats_of_bytes(content: bytes, size: int, rng: np.random.Generator | None = None) -> list[int]:
    """Return bytes as beats of `size` bytes; the last beat is padded with random bytes, or with zeros without `rng`."""
    missing = -len(content) % size
    content = content + (rng.bytes(missing) if rng else bytes(missing))
    return [int.from_bytes(content[n : n + size], "little") for n in range(0, len(content), size)]


def with_kind(word: int, kind: isa.CollectiveKind) -> int:
    return word >> 3 << 3 | kind


def other_side(word: int, kind: isa.CollectiveKind) -> int:
    """Return the word that the other core must announce for `word`, an announcement of a collective of this kind."""
    return with_kind(word, isa.OTHER_SIDE.get(kind, kind))


def field_at(kind: isa.CollectiveKind, bit: int) -> int:
    """Return 1 + the index of the announcement's field with this bit; 0 if collectives of this kind ignore the bit."""
    for index, (name, width) in enumerate(isa.SIGNATURE_FIELDS):
        if name in isa.SIGNATURE_USES[kind] and 0 <= bit - isa.SIGNATURE_OFFSETS[name] < width:
            return index + 1
    return 0
