"""Overlap of the bytes that instructions read and write."""

from functools import lru_cache
from math import gcd

import numpy as np

from neuroncore_rtl.kernels.program.allocator import offset_of
from neuroncore_rtl.spec.isa import Instruction, Region, Storage

__all__ = ["addresses_of", "check_apart", "overlap", "runs_of"]

MOST_RUNS = 1 << 20
"""A region of more than this many runs of bytes is treated as contiguous, which is conservative."""


def check_apart(instruction: Instruction) -> None:
    """Raise ValueError if an instruction's destination illegally overlaps a source or another destination."""
    for place, written in enumerate(instruction.writes):
        for other in (*instruction.writes[:place], *instruction.reads):
            if not instruction.may_overwrite(written, other) and overlap(written, other):
                spans = [_byte_span(region) for region in (written, other)]
                raise ValueError(
                    f"{instruction.name}: {written.name} must be apart from {other.name} "
                    f"(dst may also coincide with a source), not bytes {spans[0]} over {spans[1]}"
                )


def _byte_span(region: Region) -> tuple[int, int]:
    low, high = region.span
    start = 0 if region.storage == Storage.HBM else low - offset_of(low)
    return low - start, high - start


def overlap(one: Region, other: Region) -> bool:
    """Return whether two regions have a byte in common."""
    if one.storage != other.storage or not _meet(one.rows, other.rows):
        return False
    low, high = max(one.span[0], other.span[0]), min(one.span[1], other.span[1])
    if low >= high or (one.is_dense and other.is_dense):
        return low < high
    (length, pitch), (reach, step) = one.comb, other.comb
    pitch = gcd(pitch, step)
    if length <= (other.span[0] - one.span[0]) % pitch <= pitch - reach:
        return False  # disjoint modulo the pitch, such as other columns of the same rows
    (starts, length), (others, reach) = runs_of(one), runs_of(other)
    # For each run of `other`: the first run of `one` that ends after its start.
    nearest = np.searchsorted(starts, others - length, side="right")
    near = nearest < len(starts)
    return bool((starts[nearest[near]] < others[near] + reach).any())


def addresses_of(region: Region) -> np.ndarray:
    """Return the address of every byte of a region; addresses may repeat."""
    addresses = region.address + np.arange(region.size)
    for count, step in region.dimensions:
        addresses = (addresses + step * np.arange(count)[:, np.newaxis]).reshape(-1)
    return addresses


@lru_cache(maxsize=1024)
def runs_of(region: Region) -> tuple[np.ndarray, int]:
    """Return the ascending addresses of the contiguous runs that make up a region, and the length of each run."""
    low, high = region.span
    starts, length, number = np.array([low]), region.size, 1
    for step, count in sorted((abs(step), count) for count, step in region.dimensions):
        if number == 1 and step <= length:
            length += (count - 1) * step
            continue
        number *= count
        if number > MOST_RUNS:
            return np.array([low]), high - low
        starts = (starts + step * np.arange(count)[:, np.newaxis]).reshape(-1)
    return np.unique(starts), length


def _meet(a: range, b: range) -> bool:
    if a.start >= b.stop or b.start >= a.stop:
        return False
    return a.step == b.step == 1 or not set(a).isdisjoint(b)
