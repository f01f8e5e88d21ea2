"""Random numbers: distribution, independence of draws, and reproducibility."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_random_integers_have_every_bit(tmp_path, dtype):
    kernel = write_kernel(tmp_path, f"""
for n in range(2):
    a = nl.ndarray((4, 1000), dtype=nl.{dtype}, buffer=nl.sbuf)
    nisa.rng(dst=a)
    nisa.dma_copy(dst=out[n], src=a)
""", parameters="", out=f"(2, 4, 1000), nl.{dtype}")  # fmt: skip
    found = result(kernel)
    bits = np.unpackbits(found.view(np.uint8), bitorder="little").reshape(found.size, -1)
    assert bits.shape[1] == np.iinfo(dtype).bits
    # The mean of 8000 fair bits, and of two bits' agreement, is within 5 standard deviations of a half.
    assert np.abs(bits.mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(bits))
    agree = [(bits[:, i] == bits[:, j]).mean() for i in range(bits.shape[1]) for j in range(i)]
    assert np.abs(np.array(agree) - 0.5).max() < 5 * 0.5 / np.sqrt(len(bits))
    assert (found[0] == found[1]).mean() < 0.02
    assert np.array_equal(found, result(kernel))


def test_random_integers_in_psum_are_those_of_their_type(tmp_path):
    kernel = write_kernel(tmp_path, """
a, b = nl.ndarray((4, 100), dtype=nl.uint8, buffer=nl.psum), nl.ndarray((4, 100), dtype=nl.int32, buffer=nl.sbuf)
nisa.rng(dst=a)
nisa.tensor_copy(dst=b, src=a)
""", parameters="", out="(4, 100), nl.int32", stores="b")  # fmt: skip
    found = result(kernel)
    assert found.min() >= 0 and 128 < found.max() < 256


@pytest.mark.parametrize("least, most", [("-1.0", "3.0"), ("column", "3.0"), ("-1.0", "column"), ("column", "column")])
def test_uniform_numbers_are_between_their_bounds(tmp_path, least, most):
    kernel = write_kernel(tmp_path, f"""
a, column = (nl.ndarray((4, n), dtype=nl.float32, buffer=nl.sbuf) for n in (1000, 1))
nisa.memset(dst=column, value=1.0)
nisa.rand2(dst=a, min={least}, max={most})
""", parameters="", out="(4, 1000), nl.float32", stores="a")  # fmt: skip
    low, high = (1.0 if given == "column" else float(given) for given in (least, most))
    found = result(kernel)
    assert low <= found.min() and found.max() <= high
    if low < high:
        shares = np.histogram(found, 10, (low, high))[0] / found.size
        assert np.abs(shares - 0.1).max() < 5 * np.sqrt(0.09 / found.size)


def test_rand_and_dropout_of_the_language(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.rand((4, 1000), dtype=nl.float32)
kept = nl.dropout(a, rate=0.25)
""", older=True, parameters="", stores="a, kept")  # fmt: skip
    numbers, kept = run_kernel(kernel).outputs
    assert 0 <= numbers.min() and numbers.max() < 1 and np.abs(numbers.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 4000)
    assert np.array_equal(numbers * 2**24, np.round(numbers * 2**24)) and len(np.unique(numbers)) > 3990
    assert np.abs((kept == 0).mean() - 0.25) < 0.05 and np.array_equal(kept[kept != 0], numbers[kept != 0])
