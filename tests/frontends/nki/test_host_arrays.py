"""Arrays of the host: conversion to numbers of the machine, files, and errors against a reference."""

from bisect import bisect_left
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from neuroncore_rtl.frontends.nki.runtime.inputs import arguments_of, input_errors
from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import BF16, FP8E3M4, FP8E4M3, FP8E5M2, FP16, FP32, TF32
from tests.frontends.nki.kernels import result, store_kernel, write_kernel

COPY = "nl.load(x)"
SHORT = {"bf16": ml_dtypes.bfloat16, "fp8e4m3": ml_dtypes.float8_e4m3, "fp8e5m2": ml_dtypes.float8_e5m2}
SHORT |= {"fp8e3m4": ml_dtypes.float8_e3m4}


def nearest(exact: Fraction, numbers: list[float]) -> int:
    """Return the index of the number nearest to `exact`; of two, the even index."""
    after = min(bisect_left(numbers, exact), len(numbers) - 1)
    return min(range(max(after - 1, 0), after + 1), key=lambda n: (abs(Fraction(numbers[n]) - exact), n % 2))


def hard_numbers(fmt, rng, count: int) -> np.ndarray:
    """Return positive float64 numbers next to ties of a format, where a first rounding to FP32 makes a false tie."""
    codes = rng.integers(0, fmt.infinity - 1, count).astype(f"uint{fmt.bits}")
    ties = (decode(codes, fmt) + decode(codes + 1, fmt)) / 2
    nudges = rng.choice([-1, 0, 1], count) * np.exp2(rng.integers(-52, -20, count).astype(float))
    return ties * (1 + nudges)


@pytest.mark.parametrize("fmt", [BF16, FP16, FP8E4M3, FP8E5M2, FP8E3M4])
def test_floats_are_rounded_once(fmt, rng):
    numbers = decode(np.arange(fmt.infinity), fmt).tolist()
    values = np.concatenate([hard_numbers(fmt, rng, 1500), np.abs(rng.standard_cauchy(500))])
    values = values[values < fmt.max]
    expected = [nearest(Fraction(value), numbers) for value in values.tolist()]
    assert encode(values, fmt).tolist() == expected
    sign = 1 << fmt.bits - 1
    assert encode(-values, fmt).tolist() == [code | sign for code in expected]
    twice = encode(values.astype(np.float32), fmt)
    assert (twice != expected).sum() > 20


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint32])
def test_integers_are_rounded_once(dtype, rng):
    """Next to a tie of BF16, an integer of more than 24 bits becomes the tie itself if it is rounded to FP32 first."""
    numbers = decode(np.arange(BF16.infinity), BF16).tolist()
    bits = np.iinfo(dtype).bits - 1
    powers = 1 << rng.integers(25, bits, 500)
    ties = powers + (powers >> BF16.mantissa_bits + 1) * rng.choice([1, 3], 500) + rng.integers(-1, 2, 500)
    values = np.concatenate([rng.integers(0, 1 << bits, 500) >> rng.integers(0, bits, 500), ties]).astype(dtype)
    expected = np.array([nearest(Fraction(int(value)), numbers) for value in values])
    assert np.array_equal(encode(values, BF16), expected)
    assert (encode(values.astype(np.float32), BF16) != expected).sum() > 20
    if np.issubdtype(dtype, np.signedinteger):
        assert np.array_equal(encode(-values, BF16), np.where(values == 0, 0, expected | 0x8000))


def test_numbers_beyond_the_range_of_fp32_and_special_ones():
    values = np.array([1e300, -1e300, np.inf, -0.0, 1e-300, -1e-300, np.nan, 3.4e38])
    assert encode(values, BF16).tolist() == [0x7F80, 0xFF80, 0x7F80, 0x8000, 0, 0x8000, 0x7FC0, 0x7F80]
    assert encode(np.array([2.0**-1074, 1 + 2.0**-24 + 2.0**-50]), FP32).tolist() == [0, 0x3F800001]
    assert encode(np.array([1 + 2.0**-11 + 2.0**-40]), TF32).tolist() == [0x3F802000]


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        ([2.7, 1.0], "int32", "x: elements must be integers from -2147483648 to 2147483647, not 2.7"),
        ([2.5, 1.0], "uint8", "x: elements must be integers from 0 to 255, not 2.5"),
        ([np.nan, 1.0], "int32", "x: elements must be integers .*, not nan"),
        ([300, 1], "int8", "x: elements must be integers from -128 to 127, not 300"),
        ([1j, 1], "bfloat16", "x: elements must be numbers, .* not complex128"),
        ([1, 2], None, "x: dtype must be one of .*, not 'int64'"),
    ],
)
def test_arguments_that_would_change_are_refused(tmp_path, values, dtype, message):
    array = np.array([values])
    with pytest.raises(ValueError, match=message):
        result(store_kernel(tmp_path, COPY), array if dtype is None else (array, dtype))


def test_unsigned_integers_are_numbers_not_codes(tmp_path):
    kernel = store_kernel(tmp_path, COPY)
    for values, dtype in ((np.uint16([[1, 65535]]), "float16"), (np.uint32([[1, 1 << 31]]), "float32")):
        with np.errstate(over="ignore"):
            wanted = values.astype(np.float64).astype(dtype)
        assert result(kernel, (values, dtype)).tolist() == wanted.tolist()


def test_constants_of_a_kernel_are_not_cut(tmp_path):
    body = "out = nl.ndarray((1, 2), nl.int32, buffer=nl.shared_hbm)\n"
    body += "nisa.dma_copy(dst=out, src=nl.shared_constant(np.array([[2.7, 1]]), nl.int32))\nreturn out"
    with pytest.raises(ValueError, match="constant0@9: elements must be integers from .*, not 2.7"):
        result(write_kernel(tmp_path, body, parameters=""))


@pytest.mark.parametrize("short", SHORT)
def test_a_file_of_a_type_that_numpy_lacks_needs_its_type(tmp_path, short, rng):
    file = tmp_path / "x.npy"
    values = rng.normal(size=(4, 5)).astype(SHORT[short])
    np.save(file, values)
    found = arguments_of(f"x={file}:{short}", rng)["x"]
    kernel = store_kernel(tmp_path, COPY)
    assert np.array_equal(result(kernel, (found.values, found.dtype)), values.astype(np.float32))
    with pytest.raises(UsageError, match=f"INPUTS: x={file}: an array of a type that numpy lacks needs its type"):
        arguments_of(f"x={file}", rng)
    with pytest.raises(UsageError, match=f"INPUTS: x={file}:fp32: elements of float32 must have 32 bits, not "):
        arguments_of(f"x={file}:fp32", rng)


def test_a_type_after_a_file_rounds_its_numbers(tmp_path, rng):
    file = tmp_path / "x.npy"
    np.save(file, np.array([[1 + 2.0**-9, 3]]))
    with pytest.raises(UsageError, match=f"INPUTS: x={file}: dtype must be one of .*, not 'float64'"):
        arguments_of(f"x={file}", rng)
    found = arguments_of(f"x={file}:bf16 n=3", rng)
    assert found["n"] == 3
    assert result(store_kernel(tmp_path, COPY), (found["x"].values, found["x"].dtype)).tolist() == [[1, 3]]


def test_files_without_an_array_are_refused(tmp_path, rng):
    for content in (b"", b"text", b"\x93NUMPY\x01\x00"):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(UsageError, match=r"INPUTS: x=.*x.npy: .*x.npy: a file must have an array of numbers; "):
            arguments_of(f"x={tmp_path / 'x.npy'}", rng)
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(UsageError, match="a file must have an array of numbers"):
        arguments_of(f"x={tmp_path / 'x.npy'}", rng)


@pytest.mark.parametrize(
    ("found", "wanted", "largest", "differ"),
    [
        (np.int8([-128]), np.int8([127]), 255, 0),
        (np.uint8([10]), np.uint8([12]), 2, 0),
        (np.uint32([0]), np.uint32([(1 << 32) - 1]), (1 << 32) - 1, 0),
        (np.int32([-(1 << 31)]), np.int64([1 << 31]), 1 << 32, 0),
        (np.uint8([1, 0]), np.array([True, True]), 1, 0),
        (np.float32([1, np.nan, np.inf, -np.inf]), np.float32([1, np.nan, np.inf, -np.inf]), 0, 0),
        (np.float32([1, np.nan, np.inf]), np.float32([4, np.nan, np.inf]), 3, 0),
        (np.float32([1, np.nan, np.inf, 5]), np.float32([2, 1, -np.inf, np.inf]), 1, 3),
        (np.float32([1.0, 2]), np.array([1.0, 2], ml_dtypes.bfloat16), 0, 0),
        (np.float32([np.nan]), np.float32([np.nan]), 0, 0),
    ],
)
def test_errors_against_a_reference(found, wanted, largest, differ):
    rows = input_errors(lambda: wanted, {}, (found,))["output_0"]
    assert (rows["largest_error"], rows["nan_or_infinity_differs"]) == (largest, differ)


def test_a_reference_of_complex_numbers_is_refused():
    with pytest.raises(UsageError, match="REFERENCE must return arrays of real numbers"):
        input_errors(lambda: np.array([1j]), {}, (np.float32([1]),))
