"""The largest eight elements, and the positions of eight values."""

import numpy as np

from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.spec.isa.elementwise import VALUES8

__all__ = ["find_index8", "match_replace8", "max8"]

_MAGNITUDE = np.uint32(0x7FFF_FFFF)


def max8(words, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Return the largest eight of [..., n] words, n >= 8, descending: [..., 8].

    NaN is the largest value. Equal elements, such as -0 and +0, keep their order.
    """
    words = np.asarray(words, np.uint32)
    places = np.argsort(-_order(words, arithmetic), axis=-1, kind="stable")[..., :VALUES8]
    return np.take_along_axis(words, places, -1)


def find_index8(words, values, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Return the positions of eight values [..., 8] in words [..., n]: int32 [..., 8], -1 if not found.

    Each element matches at most one value: the first equal one not found before. So a value after j equal values
    matches the element after j equal elements. NaN equals NaN, and -0 equals +0.
    """
    elements, keys = (_order(np.asarray(x, np.uint32), arithmetic) for x in (words, values))
    positions = []
    for k in range(VALUES8):
        wanted = 1 + (keys[..., :k] == keys[..., k : k + 1]).sum(-1, keepdims=True)
        found = np.cumsum(elements == keys[..., k : k + 1], -1, dtype=np.int32)
        # The position is the number of elements before the count reaches the wanted one.
        position = (found < wanted).sum(-1, dtype=np.int32)
        positions.append(np.where(found[..., -1:] >= wanted, position[..., np.newaxis], np.int32(-1)))
    return np.concatenate(positions, -1)


def match_replace8(words, values, replacement, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Return words [..., n] with `replacement`, which broadcasts, at the positions that `find_index8` finds."""
    positions = find_index8(words, values, arithmetic)[..., np.newaxis]
    found = (positions == np.arange(np.shape(words)[-1], dtype=np.int32)).any(-2)
    return np.where(found, np.asarray(replacement, np.uint32), np.asarray(words, np.uint32))


def _order(words: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
    if arithmetic:
        return (words if arithmetic == Arithmetic.UINT32 else words.view(np.int32)).astype(np.int64)
    magnitude = (words & _MAGNITUDE).astype(np.int64)
    ordered = np.where(words > _MAGNITUDE, -magnitude, magnitude)
    return np.where(magnitude > FP32.infinity, np.int64(1 << 31), ordered)
