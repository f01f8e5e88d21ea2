"""Sequences on drawn shapes, views, formats and memories against float64."""

import ml_dtypes
import numpy as np
import pytest

from neuroncore_rtl import run_nki
from tests.frontends.nki.kernels import written

COLUMNS = np.arange(1000)


def cumulative(x, k):
    return np.cumsum(x / 2, axis=1), np.zeros(len(x))


def reduced(x, k):
    return x + 0.5, np.maximum((x + 0.5).max(1), 0.25)


def selected(x, k):
    y = np.where(k == 0, x, -2.5)
    return y, y.max(1)


def ranged(x, k):
    at = COLUMNS[: x.shape[1]] + 3
    y = np.where((at > 3) & (at <= 9), x, -3.4028234663852886e38)
    return y, y.max(1)


def powers(x, k):
    y = np.exp(x - 1)
    return y, y.sum(1)


def activated(x, k):
    y = np.square(2 * x - 1)
    return y, y.sum(1)


def predicated(x, k):
    return np.where(k != 0, x, 7), np.zeros(len(x))


def multiplied(x, k):
    return 3 * x - x, np.zeros(len(x))


def scanned(x, k):
    held, y = np.full(len(x), 0.5), np.empty_like(x)
    for column in range(x.shape[1]):
        y[:, column] = held = np.maximum(x[:, column], held) + x[:, column]
    return y, np.zeros(len(x))


def inverted(x, k):
    with np.errstate(divide="ignore"):
        return 1 / x, np.zeros(len(x))


def summed(x, k):
    return np.square(2 * x), np.square(2 * x).sum(1)


def magnitudes(x, k):
    return np.abs(x) * 3, np.abs(x).max(1)


def apart(x, k):
    return x - k, np.zeros(len(x))


def least(x, k):
    return x, -x.min(1)


def normalised(x, k):
    return (x - x.mean(1, keepdims=True)) * x.var(1, keepdims=True), x.mean(1)


def sided(x, k):
    rows, columns = np.ogrid[: len(x), : x.shape[1]]
    return np.where(columns - 2 * rows - 1 >= 0, x, -1.5), np.zeros(len(x))


CALLS = {
    multiplied: "nisa.scalar_tensor_tensor(dst=y, data=a, op0=nl.multiply, operand0=low, op1=nl.subtract, operand1=a)",
    scanned: "nisa.tensor_tensor_scan(dst=y, data0=a, data1=a, initial=0.5, op0=nl.maximum, op1=nl.add)",
    inverted: "nisa.reciprocal(dst=y, data=a)",
    summed: "nisa.activation_reduce(dst=y, op=nl.square, data=a, scale=2.0, reduce_op=nl.add, reduce_res=total)",
    magnitudes: "nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.abs, operand0=0.0, reduce_op=nl.maximum, "
                "reduce_res=total)\n"
                "nisa.tensor_scalar(dst=y, data=a, op0=nl.abs, operand0=None, op1=nl.multiply, operand1=low)",
    apart: "nisa.tensor_tensor(dst=y, data1=a, data2=keys, op=nl.subtract)",
    least: "nisa.tensor_copy(dst=y, src=a)\n"
           "nisa.tensor_reduce(dst=total, op=nl.minimum, data=a, axis=(1, 2), negate=True)",
    normalised: "six, two = (nl.ndarray((a.shape[0], n), dtype=nl.float32, buffer=nl.sbuf) for n in (6, 2))\n"
                "nisa.bn_stats(dst=six, data=a)\n"
                "nisa.bn_aggr(dst=two, data=six)\n"
                "nisa.tensor_copy(dst=total, src=two[:, 0:1])\n"
                "nisa.tensor_scalar(dst=y, data=a, op0=nl.subtract, operand0=total, op1=nl.multiply, "
                "operand1=two[:, 1:2])",
    sided: "nisa.affine_select(dst=y, pattern=[[shape[2], shape[1]], [1, shape[2]]], channel_multiplier=-2, offset=-1, "
           "on_true_tile=a, on_false_value=-1.5, cmp_op=nl.greater_equal)",
    cumulative: "nisa.tensor_scalar_cumulative(dst=y, src=a, op0=nl.multiply, op1=nl.add, imm0=0.5)",
    reduced: "nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.add, operand0=0.5, reduce_op=nl.maximum, "
             "reduce_res=total, reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=0.25)",
    selected: "nisa.select_reduce(dst=y, predicate=keys, on_true=a, on_false=-2.5, reverse_pred=True, "
              "reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)",
    ranged: "nisa.range_select(dst=y, on_true_tile=a, comp_op0=nl.greater, comp_op1=nl.less_equal, bound0=low, "
            "bound1=high, range_start=3, reduce_res=total)",
    powers: "nisa.exponential(dst=y, src=a, max_value=1.0, reduce_res=total, "
            "reduce_cmd=nisa.reduce_cmd.reset_reduce)",
    activated: "nisa.activate2(dst=y, op=nl.square, data=a, imm0=2.0, imm1=1.0, op0=nl.multiply, op1=nl.subtract, "
               "reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)",
    predicated: "nisa.memset(dst=y, value=7)\nnisa.tensor_copy_predicated(dst=y, src=a, predicate=keys)",
}  # fmt: skip

FORMATS = {"float32": 2e-6, "bfloat16": 2.0**-7, "float16": 2.0**-9, "float8_e5m2": 0.25}
"""Formats, and the largest relative error of a result that is rounded to one."""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("theirs", CALLS)
def test_sequences_on_drawn_views(tmp_path, theirs, seed):
    rng = np.random.default_rng((seed, list(CALLS).index(theirs)))
    rows, outer, inner = rng.integers(1, 5), rng.integers(1, 6), rng.integers(2, 9)
    gaps, first = rng.integers(1, 4, 2), rng.integers(0, 3, 2)
    wide = [int(first[n] + count * gaps[n]) for n, count in enumerate((outer, inner))]
    part = ", ".join(f"{first[n]}:{wide[n]}:{gaps[n]}" for n in range(2))
    given, stored = rng.choice(list(FORMATS), 2)
    memory, kept = rng.choice(["sbuf", "psum"], 2)
    kernel = written(tmp_path, f"""
shape = ({rows}, {outer}, {inner})
out, sums = (nl.ndarray(one, dtype=nl.float32, buffer=nl.shared_hbm) for one in (shape, ({rows}, 1)))
held, tile = (nl.ndarray(({rows}, {wide[0]}, {wide[1]}), dtype=nl.{given}, buffer=nl.{memory}) for _ in range(2))
keys, y = nl.ndarray(shape, dtype=nl.int8, buffer=nl.sbuf), nl.ndarray(shape, dtype=nl.{stored}, buffer=nl.{kept})
low, high, total = (nl.ndarray(({rows}, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(3))
for target, value in ((low, 3), (high, 9), (total, 0), (held, 1)):
    nisa.memset(dst=target, value=value)
a = held[:, {part}]
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=keys, src=k)
{CALLS[theirs]}
nisa.dma_copy(dst=out, src=y)
nisa.dma_copy(dst=sums, src=total)
return out, sums
""", parameters="x, k")  # fmt: skip
    exact = getattr(ml_dtypes, given, given)
    x = (rng.integers(-8, 9, (rows, outer, inner)) / 4).astype(np.float32).astype(exact).astype(np.float32)
    k = rng.integers(-1, 2, x.shape).astype(np.int8)
    found, sums = run_nki(kernel, (x, given), k, preset="tiny", target="golden").outputs
    expected, total = theirs(x.reshape(rows, -1).astype(np.float64), k.reshape(rows, -1))
    if kept == "sbuf":
        # PSUM holds FP32; elsewhere what a format does not hold is an infinity.
        with np.errstate(over="ignore"):
            expected = expected.astype(np.float32).astype(getattr(ml_dtypes, stored, stored))
    assert np.allclose(found.reshape(rows, -1), expected.astype(np.float64), rtol=FORMATS[stored], atol=1e-5)
    assert np.allclose(sums[:, 0], total, rtol=1e-5, atol=1e-5)
