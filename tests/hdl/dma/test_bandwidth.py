import math

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import DmaCopy, Storage
from tests.hdl.dma.copies import CONFIG, random_memories, tensor
from tests.hdl.dma.machine import run_copies
from tests.hdl.simulation import slow

CONFIGS = {16: CONFIG, 64: CONFIG.with_overrides(hbm_bytes=64)}
HBM, SBUF, PSUM = Storage.HBM, Storage.SBUF, Storage.PSUM

REPEATS = (1, 1, 2)
"""Lengths of three consecutive copies, as multiples of a length. The second and third follow equal copies, so their
times differ only by the time of one such length."""


def measure(config, copies):
    memories = random_memories(np.random.default_rng(1), config)
    outcome = run_copies(config, copies, memories, latency=50)
    assert len(outcome.retired) == len(copies)
    return np.diff([outcome.taken[0], *outcome.retired])


def by_repeat(cycles):
    return [cycles[n :: len(REPEATS)] for n in range(len(REPEATS))]


@pytest.mark.parametrize("size", [16, *slow(64)])
def test_adjacent_bytes_at_95_percent_of_a_beat_per_cycle(size):
    length = 400 * size
    pairs = [
        (tensor(src, first), tensor(dst, second + (1 << 17 if src == dst else 0)))
        for src, dst in ((HBM, SBUF), (SBUF, HBM), (HBM, HBM), (SBUF, SBUF))
        for first, second in ((0, 0), (3, 0), (0, size - 1), (7, 2))
    ]
    copies = [DmaCopy(shape=(n * length,), src=src, dst=dst) for src, dst in pairs for n in REPEATS]
    cycles = measure(CONFIGS[size], copies)
    for (src, dst), _, short, long in zip(pairs, *by_repeat(cycles), strict=True):
        rate = length / size / (long - short)
        assert rate >= 0.95, f"{rate:.2f} beats per cycle from {src} to {dst}"


@pytest.mark.parametrize("size", [16, *slow(64)])
def test_512_bytes_per_partition_at_95_percent_of_a_beat_per_cycle_over_copies(size):
    inside = tensor(SBUF, 0, (1, 1), axis=0)
    rows = [tensor(HBM, 0, (step, 1)) for step in (512, 1024)]
    copies = [DmaCopy(shape=(8, 512), src=row, dst=inside) for row in rows for _ in range(4)]
    copies += [DmaCopy(shape=(8, 512), src=inside, dst=row) for row in rows for _ in range(4)]
    cycles = measure(CONFIGS[size], copies)
    rates = 8 * 512 / size / np.concatenate([cycles[1:8], cycles[9:]])
    assert min(rates) >= 0.95, f"{min(rates):.2f} beats per cycle"


def test_four_elements_per_cycle_in_casts_and_one_in_strides_transposes_and_psum():
    count = 400
    cases = {
        "cast down": (4, (count,), tensor(HBM, fmt=FP32), tensor(SBUF, fmt=BF16)),
        "cast up": (4, (count,), tensor(SBUF, fmt=BF16), tensor(HBM, fmt=FP32)),
        "stride read": (1, (count,), tensor(HBM, 0, (9,), BF16), tensor(SBUF, fmt=BF16)),
        "stride written": (1, (count,), tensor(SBUF, fmt=BF16), tensor(HBM, 0, (9,), BF16)),
        "backwards": (1, (count,), tensor(SBUF, 0x4000, (-1,), BF16), tensor(SBUF, fmt=BF16)),
        "transpose": (1, (count, 4), tensor(HBM, 0, (4, 1), BF16), tensor(SBUF, 0, (1, 1), BF16, axis=1)),
        "from PSUM": (1, (count,), tensor(PSUM, fmt=FP32), tensor(SBUF, fmt=FP32)),
        "to PSUM": (1, (count,), tensor(SBUF, fmt=FP32), tensor(PSUM, fmt=FP32)),
    }
    copies = [
        DmaCopy(shape=(n * shape[0], *shape[1:]), src=src, dst=dst)
        for _, shape, src, dst in cases.values()
        for n in REPEATS
    ]
    cycles = measure(CONFIGS[16], copies)
    for (name, (rate, shape, *_)), _, short, long in zip(cases.items(), *by_repeat(cycles), strict=True):
        found = math.prod(shape) / (long - short)
        assert found >= 0.95 * rate, f"{name}: {found:.2f} elements per cycle"
