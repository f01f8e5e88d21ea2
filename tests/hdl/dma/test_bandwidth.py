import math

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import DmaCopy, Storage
from tests.hdl.dma.copies import CONFIG, random_memories, tensor
from tests.hdl.dma.machine import run_copies
from tests.hdl.simulation import slow

HBM, SBUF, PSUM = Storage.HBM, Storage.SBUF, Storage.PSUM


def measure(size, copies):
    config = CONFIG.with_overrides(hbm_bytes=size)
    outcome = run_copies(config, copies, random_memories(np.random.default_rng(1), config))
    assert len(outcome.retired) == len(copies)
    return np.diff([outcome.taken[0], *outcome.retired])


def assert_rates(size, cases):
    """Compare the elements per cycle of copies with 95 % of a rate; a case is a rate, a shape, source and destination.

    Each copy is executed twice, then with twice its length. The second and third follow equal copies, so their times
    differ only by the time of one such length.
    """
    copies = []
    for _, (length, *inner), src, dst in cases.values():
        copies += [DmaCopy(shape=(n * length, *inner), src=src, dst=dst) for n in (1, 1, 2)]
    cycles = measure(size, copies)
    for (name, (rate, shape, *_)), short, long in zip(cases.items(), cycles[1::3], cycles[2::3], strict=True):
        found = math.prod(shape) / (long - short)
        assert found >= 0.95 * rate, f"{name}: {found:.2f} elements per cycle"


@pytest.mark.parametrize("size", [16, *slow(64)])
def test_adjacent_bytes_at_95_percent_of_a_beat_per_cycle(size):
    cases = {}
    for src, dst in ((HBM, SBUF), (SBUF, HBM), (HBM, HBM), (SBUF, SBUF)):
        for first, second in ((0, 0), (3, 0), (0, size - 1), (7, 2)):
            sides = tensor(src, first), tensor(dst, second + (1 << 17 if src == dst else 0))
            cases[f"from {src.name} {first} to {dst.name} {second}"] = size, (400 * size,), *sides
    assert_rates(size, cases)


@pytest.mark.parametrize("size", [16, *slow(64)])
def test_512_bytes_per_partition_at_95_percent_of_a_beat_per_cycle_over_copies(size):
    inside = tensor(SBUF, 0, (1, 1), axis=0)
    rows = [tensor(HBM, 0, (step, 1)) for step in (512, 1024) for _ in range(4)]
    copies = [DmaCopy(shape=(8, 512), src=row, dst=inside) for row in rows]
    copies += [DmaCopy(shape=(8, 512), src=inside, dst=row) for row in rows]
    rates = 8 * 512 / size / np.delete(measure(size, copies), [0, len(rows)])
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
    assert_rates(16, cases)
