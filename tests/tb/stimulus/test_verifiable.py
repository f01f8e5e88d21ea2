"""Inputs of reductions equal those of nccl-tests."""

import zlib

import numpy as np
import pytest

from neuroncore_rtl.spec.isa.collective import CollectiveType, ReduceOp
from neuroncore_rtl.tb.stimulus.verifiable import expected, inputs

FP32, BF16, INT32 = CollectiveType
SUM, MAX, MIN = ReduceOp

FIRST = {
    (FP32, SUM): ("f2d0d892 aed8d835 fe44d372", "72e59b20 2e86d697 7e2231f0", "71261470 ae24033c fd0a8608"),
    (FP32, MAX): ("bec5045c 2c596e53 4721be49", "25904ac3 ba579f12 364efeee", "25904ac3 2c596e53 4721be49"),
    (BF16, SUM): ("f1d0 a8d8 fdc4", "71e5 2886 7da2", "7028 a824 fc88"),
    (BF16, MIN): ("bedc 2c53 4749", "25c3 ba12 366e", "bedc ba12 366e"),
    (INT32, SUM): ("3fb9be29 a8c68d10 efd10574", "e3fc70f2 4bd13b27 a3287cc8", "23b62f1b f497c837 92f9823c"),
    (INT32, MIN): ("3fb9be29 a8c68d10 efd10574", "e3fc70f2 4bd13b27 a3287cc8", "e3fc70f2 a8c68d10 a3287cc8"),
}
"""Both inputs and the result, for two ranks and seed 1."""

CHECKSUMS = {
    (FP32, SUM): (0xF62F933D, 0xE1AD603A),
    (FP32, MAX): (0x5CD19723, 0x24D9CFEE),
    (FP32, MIN): (0x5CD19723, 0xD76FE168),
    (BF16, SUM): (0xED769CF5, 0xF546D1D6),
    (BF16, MAX): (0xFC27EF87, 0x62D04BD3),
    (BF16, MIN): (0xFC27EF87, 0x245D237E),
    (INT32, SUM): (0xD9EF0AD8, 0xC6FC0B77),
    (INT32, MAX): (0xD9EF0AD8, 0xAFEF268B),
    (INT32, MIN): (0xD9EF0AD8, 0xE932BF4C),
}
"""CRC-32 of 1,000 elements of seven ranks in order, and of the results; the seed is 0x123456789ab."""


@pytest.mark.parametrize(("dtype", "op"), FIRST)
def test_first_elements_are_the_originals(dtype, op):
    arrays = [*(inputs(dtype, op, 2, rank, 1, 3) for rank in range(2)), expected(dtype, op, 2, 1, 3)]
    assert [" ".join(f"{code:x}" for code in codes) for codes in arrays] == [*FIRST[dtype, op]]


@pytest.mark.parametrize(("dtype", "op"), CHECKSUMS)
def test_many_elements_are_the_originals(dtype, op):
    ranks, seed, count = 7, 0x123456789AB, 1000
    codes = b"".join(inputs(dtype, op, ranks, rank, seed, count).tobytes() for rank in range(ranks))
    assert (zlib.crc32(codes), zlib.crc32(expected(dtype, op, ranks, seed, count).tobytes())) == CHECKSUMS[dtype, op]


@pytest.mark.parametrize("dtype", (FP32, BF16))
@pytest.mark.parametrize("ranks", (2, 3, 8, 33, 64))
def test_sums_are_exact_in_any_order(rng, dtype, ranks):
    codes = np.stack([inputs(dtype, SUM, ranks, rank, 5, 2000) for rank in range(ranks)])
    shift = 16 * (dtype is BF16)
    numbers = (codes.astype(np.uint32) << shift).view(np.float32)
    results = (expected(dtype, SUM, ranks, 5, 2000).astype(np.uint32) << shift).view(np.float32)
    assert len(np.unique(results)) > 1000
    for order in (np.arange(ranks), rng.permutation(ranks)):
        total = np.zeros(2000, np.float32)
        for rank in order:
            total += numbers[rank]
            assert not (total.view(np.uint32) & (1 << shift) - 1).any()
        np.testing.assert_array_equal(total, results)
