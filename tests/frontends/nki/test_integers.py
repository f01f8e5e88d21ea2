"""Unsigned types, masks, remainders and rounding to integers; integers of more than 24 bits become narrow floats."""

import numpy as np
import pytest

from neuroncore_rtl import Program, dma_copy, instructions, run
from neuroncore_rtl.spec.isa import AluOp, Index
from tests.frontends.nki.kernels import result, store_kernel, write_kernel

RNG = np.random.default_rng(7)
X = (RNG.normal(size=(4, 24)) * 5).astype(np.float32)
BYTES = RNG.integers(0, 256, (4, 24)).astype(np.uint8)
WORDS = np.concatenate([RNG.integers(0, 1 << 32, (4, 20)), np.tile([0, 1, 1 << 31, (1 << 32) - 1], (4, 1))], 1)
WORDS = WORDS.astype(np.uint32)


def compute(tmp_path, x, expression, dtype):
    return result(write_kernel(tmp_path, "a = nl.load(x)", True, out=f"x.shape, nl.{dtype}", stores=expression), x)


@pytest.mark.parametrize(
    ("x", "expression", "dtype", "function"),
    [
        (X, "nl.mod(a, 1.5)", "float32", lambda a: np.mod(a, np.float32(1.5))),
        (X, "a % -1.5", "float32", lambda a: np.mod(a, np.float32(-1.5))),
        (X, "nl.fmod(a, 1.5)", "float32", lambda a: np.fmod(a, np.float32(1.5))),
        (X, "nl.mod(7.0, a)", "float32", lambda a: np.mod(np.float32(7), a)),
        (X, "nl.less(a, 1.0, dtype=nl.bool_)", "bool_", lambda a: a < 1),
        (BYTES, "a << (a & 7)", "uint8", lambda a: a << (a & np.uint8(7))),
        (BYTES, "nl.mod(a, 7)", "int32", lambda a: a % 7),
        (BYTES, "nl.copy(a, dtype=nl.uint32) * 16777259", "uint32", lambda a: a * np.uint32(16777259)),
        (BYTES, "nl.floor(a)", "uint16", lambda a: a),
        (WORDS, "nl.copy(a, dtype=nl.float32)", "float32", lambda a: a.astype(np.float32)),
    ],
)
def test_expression_is_that_of_numpy(tmp_path, x, expression, dtype, function):
    found = compute(tmp_path, x, expression, dtype)
    assert found.dtype == np.dtype("uint8" if dtype == "bool_" else dtype)
    assert np.array_equal(found, function(x))


def test_iota_of_a_type_without_a_sign(tmp_path):
    found = compute(tmp_path, WORDS, "nisa.iota(nl.arange(24)[None, :] + 4294967290, dtype=nl.uint32)", "uint32")
    assert np.array_equal(found[0], (np.arange(24) + 2**32 - 6) % 2**32)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_positions_have_the_type_that_is_asked_for(tmp_path, dtype):
    kernel = write_kernel(tmp_path, f"""
a = nl.load(x)
top = nisa.max8(src=a)
top[:, 7:8] = nl.full((4, 1), 1000.0, nl.float32)
nl.store(out, value=nisa.nc_find_index8(data=a, vals=top{'' if dtype == 'uint32' else ', dtype=nl.uint16'}))
""", older=True, out=f"(4, 8), nl.{dtype}")  # fmt: skip
    order = np.argsort(-X, 1)[:, :8].astype(dtype)
    order[:, 7] = np.iinfo(dtype).max
    assert np.array_equal(result(kernel, X), order)


def test_types_are_promoted_to_one_that_holds_both(tmp_path):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.load(x, dtype=nl.int8)
total = a + b
assert total.dtype == nl.int16 and (a + a).dtype == nl.uint8, total.dtype
return x
""", older=True)  # fmt: skip
    assert np.array_equal(result(kernel, BYTES), BYTES)


@pytest.mark.parametrize("other", ["float32", "float16", "bfloat16", "uint8"])
@pytest.mark.parametrize("sums", ["float32", "int32"])
def test_bytes_are_operands_of_a_product(tmp_path, other, sums):
    """The array has no unsigned multiplier, so bytes are converted to floats, and sums are cast."""
    kernel = write_kernel(tmp_path, f"""
bytes, others = nl.load(x), nl.load(y)
one, two = (nl.ndarray((4, 4), dtype=nl.{sums}, buffer=nl.psum) for _ in range(2))
one[...] = nisa.nc_matmul(bytes, others)
two[...] = nisa.nc_matmul(others, bytes)
nl.store(out[0], value=one)
nl.store(out[1], value=two)
""", older=True, parameters="x, y", out=f"(2, 4, 4), nl.{sums}")  # fmt: skip
    x, y = RNG.integers(0, 256, (4, 4)), RNG.integers(0, 50, (4, 4))
    assert np.array_equal(result(kernel, x.astype(np.uint8), (y, other)), np.stack([x.T @ y, y.T @ x]))


def test_sums_of_floats_go_on_in_float32(tmp_path):
    kernel = write_kernel(tmp_path, """
sums = nl.zeros((4, 4), dtype=nl.int32, buffer=nl.psum)
nisa.memset(dst=sums, value=1)
nisa.nc_matmul(dst=sums, stationary=nl.load(x), moving=nl.load(x), accumulate=True)
return x
""")  # fmt: skip
    with pytest.raises(ValueError, match="floating-point sums must accumulate in float32, not in int32"):
        result(kernel, X[:, :4])


TIE = (1 << 30) + (1 << 22)
"""Halfway between two numbers of BF16. The integers next to it become this number in FP32."""

NUMBERS = np.array([[TIE - 1, TIE, TIE + 1, -TIE - 1, 3 * TIE // 2 + 1, (1 << 31) - 1, -(1 << 31), 5]])
BF16 = np.array([[0x4E80, 0x4E80, 0x4E81, 0xCE81, 0x4EC1, 0x4F00, 0xCF00, 0x40A0]])
ON = pytest.mark.parametrize("on", ["golden", "rtl"])


def bits(numbers: np.ndarray) -> list[list[int]]:
    """Return BF16 numbers, as float32, as their codes."""
    words = numbers.view(np.uint32)
    assert not (words & 0xFFFF).any()
    return (words >> 16).tolist()


@ON
def test_copies_of_the_vector_engine_and_of_dma_round_once(on):
    def kernel(program: Program) -> None:
        x = program.space.hbm("x", "int32", (1, 8))
        copied, loaded, chosen, kept, counted = (
            program.space.hbm(n, "bf16", (1, 8)) for n in ("y0", "y1", "y2", "y3", "y4")
        )
        tile, one = program.space.sbuf("tile", "int32", (8,), 1), program.space.sbuf("one", "int32", (1,), 1)
        program.append(dma_copy(tile, x))
        program.append(dma_copy(one, x[:, 4:5]))
        for to, instruction in (
            (copied, lambda out: instructions.tensor_copy(out, tile)),
            (loaded, lambda out: dma_copy(out, x)),
            (chosen, lambda out: instructions.select(out, tile, tile, one)),
            (kept, lambda out: instructions.affine_select(out, tile, Index(steps=(1,)), AluOp.IS_GE, 0.0)),
            (counted, lambda out: instructions.iota(out, Index(base=TIE + 1, steps=(0,)))),
        ):
            out = program.space.sbuf(to.name, "bf16", (8,), 1)
            program.append(instruction(out))
            program.append(dma_copy(to, out))

    done = run(kernel, {"x": NUMBERS}, preset="tiny", on=on)
    for name in ("y0", "y1", "y2", "y3"):
        assert done.codes[name].tolist() == BF16.tolist(), name
    assert done.codes["y4"].tolist() == [[0x4E81] * 8]


@ON
@pytest.mark.parametrize("expression", ["nl.load(x, dtype=nl.bfloat16)", "nl.copy(nl.load(x), dtype=nl.bfloat16)"])
def test_copies_of_a_kernel_round_once(tmp_path, expression, on):
    kernel = store_kernel(tmp_path, expression, "x.shape, nl.bfloat16")
    assert bits(result(kernel, NUMBERS.astype(np.int32), on=on)) == BF16.tolist()


def test_unsigned_integers_round_once(tmp_path):
    kernel = store_kernel(tmp_path, "nl.load(x, dtype=nl.bfloat16)", "x.shape, nl.bfloat16")
    found = result(kernel, np.array([[2 * TIE + 1, 2 * TIE, (1 << 32) - 1]], np.uint32))
    assert bits(found) == [[0x4F01, 0x4F00, 0x4F80]]


def test_fp32_and_arithmetic_round_to_nearest_even(tmp_path):
    found = compute(tmp_path, NUMBERS.astype(np.int32), "nl.copy(a, dtype=nl.float32)", "float32")
    assert np.array_equal(found, NUMBERS.astype(np.float32))


@pytest.mark.parametrize("value", [TIE + 1, float(TIE + 1), -TIE - 1, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1e39, 0.1])
def test_numbers_of_python_round_once(tmp_path, value):
    kernel = store_kernel(tmp_path, f"nl.full((1, 2), {value}, nl.bfloat16)", "(1, 2), nl.bfloat16", "")
    known = {TIE + 1: 0x4E81, -TIE - 1: 0xCE81, 1 + 2.0**-8 + 2.0**-40: 0x3F81, 1 + 2.0**-8: 0x3F80}
    known |= {1e39: 0x7F80, 0.1: 0x3DCD}
    assert bits(result(kernel)) == [[known[value]] * 2]
