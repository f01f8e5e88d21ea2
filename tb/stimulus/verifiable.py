"""Inputs of reductions with known results, as in NVIDIA's nccl-tests.

Every number is a function of the seed, the element's index and the rank. The terms of a floating-point sum are
multiples of one last place, such that every partial sum, in any order, is representable: half of the ranks, shuffled
for each element, add up to one significand, the others to the negative of another one. So the result does not depend on
the order.

The code reimplements verifiable/verifiable.cu of https://github.com/NVIDIA/nccl-tests at commit a0b82b2;
`tests/tb/stimulus/test_verifiable.py` has numbers of the original.
"""

import numpy as np

from neuroncore_rtl.spec.formats import BF16, FP32, FloatFormat
from neuroncore_rtl.spec.isa.collective import CollectiveType, ReduceOp

__all__ = ["expected", "inputs"]

_GOLDEN_RATIO, _MURMUR = np.uint64(0x9E3779B97F4A7C13), np.uint64(0xC4CEB9FE1A85EC53)
_FLOATS = {CollectiveType.FP32: FP32, CollectiveType.BF16: BF16}
_STORAGE = {CollectiveType.FP32: np.uint32, CollectiveType.BF16: np.uint16, CollectiveType.INT32: np.uint32}


def inputs(dtype: CollectiveType, op: ReduceOp, ranks: int, rank: int, seed: int, count: int) -> np.ndarray:
    """Return a rank's contribution [count]: codes of the type, uint16 for BF16, else uint32."""
    index = np.arange(count, dtype=np.uint64)
    if dtype not in _FLOATS or op is not ReduceOp.SUM:
        words = _hashed(index ^ index << np.uint64(16) ^ np.uint64(rank), np.uint64(seed))
        codes = words if dtype not in _FLOATS else _middle_range(words, _FLOATS[dtype])
    else:
        codes, _ = _terms(_FLOATS[dtype], ranks, rank, seed, index)
    return codes.astype(_STORAGE[dtype])


def expected(dtype: CollectiveType, op: ReduceOp, ranks: int, seed: int, count: int) -> np.ndarray:
    """Return the result, codes as `inputs`."""
    if dtype in _FLOATS and op is ReduceOp.SUM:
        _, codes = _terms(_FLOATS[dtype], ranks, 0, seed, np.arange(count, dtype=np.uint64))
        return codes.astype(_STORAGE[dtype])
    codes = np.stack([inputs(dtype, op, ranks, rank, seed, count) for rank in range(ranks)])
    if op is ReduceOp.SUM:
        return codes.sum(0, np.uint32)
    numbers = codes.astype(np.uint32) << np.uint32(16 * (dtype == CollectiveType.BF16))
    chosen = numbers.view(np.float32 if dtype in _FLOATS else np.int32)
    best = (np.argmax if op is ReduceOp.MAX else np.argmin)(chosen, axis=0)
    return np.take_along_axis(codes, best[None], axis=0)[0]


def _hashed(a: np.ndarray, b: np.ndarray | np.uint64) -> np.ndarray:
    with np.errstate(over="ignore"):
        a = a + np.uint64(1 << 32) + b
        a = (a ^ a >> np.uint64(32)) * _GOLDEN_RATIO
        a = a + (b >> np.uint64(16) ^ b << np.uint64(48))
        return (a ^ a >> np.uint64(32)) * _MURMUR


def _mixed(word: np.ndarray) -> np.ndarray:
    for first in (True, False):
        low, high = _halves(word)
        high = high + np.uint32(first)
        low = low ^ (high if first else high << np.uint32(16) ^ high >> np.uint32(16))
        word = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        word = word * _GOLDEN_RATIO if first else word
    return word


def _halves(word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return word.astype(np.uint32), (word >> np.uint64(32)).astype(np.uint32)


def _below(word: np.ndarray, bound: int) -> np.ndarray:
    """Return random integers below a bound, from random words (uint32), int64."""
    return (word.astype(np.uint64) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def _middle_range(word: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Return floats from random words: sign, an exponent of the middle half, mantissa."""
    sign = word & np.uint64(1)
    word = word ^ word >> np.uint64(1)
    field = (word & np.uint64((1 << fmt.exponent_bits - 1) - 1)) + np.uint64(1 << fmt.exponent_bits - 2)
    word = word ^ word >> np.uint64(fmt.exponent_bits)
    mantissa = word & np.uint64((1 << fmt.mantissa_bits) - 1)
    return sign << np.uint64(fmt.bits - 1) | field << np.uint64(fmt.mantissa_bits) | mantissa


def _terms(fmt: FloatFormat, ranks: int, rank: int, seed: int, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a rank's term of a sum, and the sum, as codes."""
    random = _hashed(np.full_like(index, seed), index)
    lowest, highest = 1 + fmt.mantissa_bits, (1 << fmt.exponent_bits) - 1
    sign = (random & np.uint64(1)).astype(np.int64)
    field = lowest + _below(_halves(random)[1], highest - lowest)
    random = _mixed(random)
    place, random = _shuffled(ranks, rank, random)

    most = (2 << fmt.mantissa_bits) - 1
    total, random = (most + 1) // 2 + _below(_halves(random)[0], most // 2 + 1), _mixed(random)
    other, random = total + 1 + _below(_halves(random)[0], most // 2), _mixed(random)
    other = np.where(other > most, other - most // 2, other)
    odd = place % 2 == 1
    # Ranks at even places of the random order contribute to `total`, ranks at odd places to `other`.
    shares = [_share(place // 2, count, part) for count, part in (((ranks + 1) // 2, total), (ranks // 2, other))]
    term = _coded(fmt, sign ^ odd, field, np.where(odd, shares[1], shares[0]))
    return term, _coded(fmt, sign ^ (total < other), field, np.abs(total - other))


def _shuffled(ranks: int, rank: int, random: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank's position in a random order of the ranks (int64), and the next random words."""
    a, b = (half.astype(np.int64) for half in _halves(random))
    mask = (1 << ranks.bit_length() - 1) - 1
    rest = ranks - (mask + 1)

    def permuted(place: np.ndarray, factor: np.ndarray, offset: np.ndarray) -> np.ndarray:
        # Both steps are bijective modulo a power of two: an odd multiple, and the triangular numbers.
        place = (place * (factor & mask | 1) + offset) & mask
        return (place * place + place) // 2 & mask

    # Permute the lower places, a power of two of them; rotate the order; permute the lower ones again.
    place = np.full(len(random), rank, np.int64)
    place = permuted(place, a, b) + rest if rank <= mask else place - (mask + 1)
    return np.where(place <= mask, permuted(place, b, a), place), _mixed(random)


def _share(place: np.ndarray, count: int, total: np.ndarray) -> np.ndarray:
    """Return the summand of the rank at position `place`; the summands of all `count` positions add up to `total`.

    The positions form groups of equal size. Each position in the first group contributes 1, in the second group 2, and
    so on; the last position contributes the remainder.
    """
    groups = np.clip(2 * (total // count) - 1, 1, count)
    once = groups * (groups + 1) // 2
    size = np.minimum(total // once, count // groups)
    group = place // size
    return np.where(group < groups, 1 + group, 0) + np.where(place == count - 1, total - size * once, 0)


def _coded(fmt: FloatFormat, sign: np.ndarray, field: np.ndarray, multiple: np.ndarray) -> np.ndarray:
    """Return the codes of multiples of a last place; `field` is the exponent field of full-length multiples."""
    _, length = np.frexp(multiple.astype(np.float64))
    missing = fmt.precision - length
    mantissa = multiple << np.maximum(missing, 0) & (1 << fmt.mantissa_bits) - 1
    codes = sign << fmt.bits - 1 | field - missing << fmt.mantissa_bits | mantissa
    return np.where(multiple == 0, 0, codes)
