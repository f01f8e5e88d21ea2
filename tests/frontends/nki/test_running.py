"""Calls with running results against numpy."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel

RNG = np.random.default_rng(21)
X = RNG.normal(size=(4, 24)).astype(np.float32)

TILES = """
a, y = nl.load(x), nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
total = nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.sbuf)
cmd = nisa.reduce_cmd
"""


def outputs(tmp_path, body, *args):
    more = range(1, len(args))
    lines = TILES + "".join(f"t{n} = nl.load(x{n})\n" for n in more) + body
    kernel = write_kernel(tmp_path, lines, parameters="x" + "".join(f", x{n}" for n in more), stores="y, total")
    return run_kernel(kernel, *args).outputs


REDUCTIONS = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_go_on(tmp_path, op):
    y, sums = outputs(tmp_path, f"""
options = dict(op0=nl.add, operand0=0.5, reduce_op=nl.{op})
nisa.tensor_scalar_reduce(dst=y[:, 0:5], data=a[:, 0:5], **options)
nisa.tensor_scalar_reduce(dst=y[:, 5:7], data=a[:, 5:7], **options, reduce_cmd=cmd.reduce)
nisa.tensor_scalar_reduce(dst=y[:, 7:24], data=a[:, 7:24], **options, reduce_cmd=cmd.reduce, reduce_res=total,
                          reduce_res_negate=True)
""", X)  # fmt: skip
    assert np.array_equal(y, X + np.float32(0.5))
    assert np.allclose(sums[:, 0], -REDUCTIONS[op].reduce(X + 0.5, axis=1), rtol=1e-5)


def test_a_reduction_starts_from_a_value_or_from_its_own_tensor(tmp_path):
    start = np.float32([[9], [-9], [0.5], [30]])
    _, sums = outputs(tmp_path, """
options = dict(op0=nl.multiply, operand0=2.0, reduce_op=nl.maximum, reduce_res=total)
nisa.tensor_scalar_reduce(dst=y, data=a, **options, reduce_cmd=cmd.load_reduce, reduce_init=t1)
nisa.tensor_scalar_reduce(dst=y[:, 0:3], data=y[:, 0:3], **options, reduce_cmd=cmd.reduce)
""", X, start)  # fmt: skip
    theirs = np.maximum(np.maximum(start[:, 0], 2 * X.max(1)), 4 * X[:, :3].max(1))
    assert np.array_equal(sums[:, 0], theirs)


@pytest.mark.parametrize(
    "body, message",
    [
        ("nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=total, "
         "reduce_cmd=nisa.reduce_cmd.reduce)", "reduce must continue a reset"),
        ("nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=total, "
         "reduce_cmd=nisa.reduce_cmd.load_reduce)", "load_reduce must have a value to start from"),
        ("nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=total)\n"
         "nisa.memset(dst=total, value=3)\n"
         "nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=total, "
         "reduce_cmd=nisa.reduce_cmd.reduce)", "a tensor that reduce continues from must not be written in between"),
        ("nisa.activate2(dst=y, op=nl.prelu, data=a, imm0=1.0, imm1=0.0, op0=nl.multiply, op1=nl.add, "
         "relu_param=total)", "relu_param must be a number"),
        ("options = dict(op=nl.square, reduce_op=nl.add)\n"
         "nisa.activation(dst=y[0:2], data=a[0:2], **options, reduce_cmd=nisa.reduce_cmd.reset_reduce)\n"
         "nisa.activation(dst=y, data=a, **options, reduce_cmd=nisa.reduce_cmd.reduce, reduce_res=total)",
         "reduce must continue in the 2 partitions that it began in, not 4"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_is_refused(tmp_path, body, message):
    with pytest.raises(ValueError, match=message):
        outputs(tmp_path, body, X)


@pytest.mark.parametrize("idle", [False, True])
def test_sums_of_activations_go_on(tmp_path, idle):
    y, sums = outputs(tmp_path, f"""
options = dict(op=nl.square, reduce_op=nl.add)
nisa.activation(dst=y[:, 0:5], data=a[:, 0:5], **options, reduce_cmd=cmd.reset_reduce)
if {idle}:
    nisa.activation(dst=y[:, 0:5], op=nl.exp, data=a[:, 0:5])
nisa.activation(dst=y[:, 5:24], data=a[:, 5:24], **options, reduce_cmd=cmd.reduce)
nisa.activation(dst=y[:, 5:24], data=a[:, 5:24], **options, reduce_cmd=cmd.reduce, reduce_res=total)
""", X)  # fmt: skip
    assert np.allclose(y[:, :5], np.exp(X[:, :5]) if idle else X[:, :5] ** 2, rtol=1e-5)
    theirs = (X.astype(np.float64) ** 2).sum(1) + (X[:, 5:].astype(np.float64) ** 2).sum(1)
    assert np.allclose(sums[:, 0], theirs, rtol=1e-5)


def test_a_reset_leaves_out_the_elements(tmp_path):
    _, sums = outputs(tmp_path, """
nisa.activation(dst=y, op=nl.copy, data=a, reduce_op=nl.add, reduce_cmd=cmd.reset)
nisa.activation(dst=y, op=nl.copy, data=a, reduce_op=nl.add, reduce_cmd=cmd.reduce, reduce_res=total)
""", X)  # fmt: skip
    assert np.allclose(sums[:, 0], X.sum(1), rtol=1e-5)


@pytest.mark.parametrize("op", [*REDUCTIONS, "subtract"])
@pytest.mark.parametrize("fmt", ["float32", "bfloat16"])
def test_cumulative_operations_go_on(tmp_path, op, fmt):
    if op == "subtract":
        theirs = np.zeros((4, 24))
        for i in range(24):
            theirs[:, i] = X[:, i] / 2 - (theirs[:, i - 1] if i else 0)
    else:
        theirs = REDUCTIONS[op].accumulate(X.astype(np.float64) / 2, axis=1)
    y, _ = outputs(tmp_path, f"""
options = dict(op0=nl.multiply, op1=nl.{op}, imm0=0.5)
nisa.tensor_scalar_cumulative(dst=y[:, 0:10], src=a[:, 0:10], **options)
nisa.tensor_scalar_cumulative(dst=y[:, 10:24], src=a[:, 10:24], **options, reduce_cmd=nisa.reduce_cmd.reduce)
nisa.memset(dst=total, value=0)
""", (X, fmt))  # fmt: skip
    assert np.allclose(y, theirs, rtol=1e-5 if fmt == "float32" else 0.02, atol=1e-5 if fmt == "float32" else 0.02)


@pytest.mark.parametrize("fmt", ["float32", "bfloat16"])
@pytest.mark.parametrize("first, second", [("greater_equal", "less"), ("greater", "less_equal"), ("equal", "less")])
def test_ranges_are_selected(tmp_path, first, second, fmt):
    low, high = np.float32([[0], [5], [20], [3]]), np.float32([[9], [24], [20], [103]])
    y, sums = outputs(tmp_path, f"""
options = dict(on_true_tile=a, comp_op0=nl.{first}, comp_op1=nl.{second}, bound0=t1, bound1=t2)
nisa.range_select(dst=y, **options, range_start=100, on_false_value=nl.fp32.min)
nisa.range_select(dst=y, **options, range_start=2, reduce_cmd=nisa.reduce_cmd.reduce, reduce_res=total)
""", (X, fmt), low, high)  # fmt: skip
    x = X if fmt == "float32" else (X.view(np.uint32) + 0x8000 & np.uint32(0xFFFF0000)).view(np.float32)
    above, below = getattr(np, first), getattr(np, second)
    places = (start + np.arange(24) for start in (100, 2))
    parts = [np.where(above(at, low) & below(at, high), x, np.finfo(np.float32).min) for at in places]
    assert np.array_equal(sums, np.maximum(*parts).max(1, keepdims=True))
    assert np.array_equal(y, parts[1] if fmt == "float32" else np.where(parts[1] < -3e38, -np.inf, parts[1]))


def test_exponentials_are_summed(tmp_path):
    least = X.max(1, keepdims=True)
    y, sums = outputs(tmp_path, """
nisa.exponential(dst=y[:, 0:9], src=a[:, 0:9], max_value=t1, reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=3.0)
nisa.exponential(dst=y[:, 9:24], src=a[:, 9:24], max_value=1.5, reduce_cmd=nisa.reduce_cmd.reduce, reduce_res=total)
""", X, least)  # fmt: skip
    theirs = np.concatenate([np.exp(X[:, :9] - least), np.exp(X[:, 9:] - np.float32(1.5))], 1)
    assert np.allclose(y, theirs, rtol=1e-6) and np.allclose(sums[:, 0], 3 + theirs.sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    "first, second, reverse",
    [
        ("multiply", "add", ""), ("multiply", "bypass", ""), ("add", "bypass", ""), ("subtract", "bypass", "0"),
        ("multiply", "subtract", ""), ("multiply", "subtract", "1"), ("bypass", "bypass", ""),
    ],
)  # fmt: skip
def test_activations_behind_two_operations(tmp_path, first, second, reverse):
    turned = f", reverse{reverse}=True" if reverse else ""
    plain = {"multiply": np.multiply, "add": np.add, "subtract": np.subtract, "bypass": lambda a, b: a}
    value = plain[first](1.5, X) if reverse == "0" else plain[first](X, 1.5)
    value = plain[second](0.25, value) if reverse == "1" else plain[second](value, 0.25)
    y, sums = outputs(tmp_path, f"""
nisa.activate2(dst=y, op=nl.prelu, data=a, imm0=1.5, imm1=0.25, op0=nl.{first}, op1=nl.{second}, relu_param=0.5{turned},
               reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
""", X)  # fmt: skip
    theirs = np.where(value > 0, value, value / 2)
    assert np.allclose(y, theirs, rtol=1e-6, atol=1e-6) and np.allclose(sums[:, 0], theirs.sum(1), rtol=1e-5)


def test_a_range_is_returned_in_the_first_dialect(tmp_path):
    kernel = write_kernel(tmp_path, """
bounds = [nl.full((4, 1), value, dtype=nl.float32) for value in (3, 9)]
y = nl.ndarray(x.shape, dtype=x.dtype)
y[...] = nisa.range_select(on_true_tile=nl.load(x), comp_op0=np.greater, comp_op1=np.less, bound0=bounds[0],
                           bound1=bounds[1], reduce_op=np.max, on_false_value=nl.fp32.min)
""", older=True, out="x.shape, x.dtype", stores="y")  # fmt: skip
    at = np.arange(24)
    assert np.array_equal(result(kernel, X), np.where((at > 3) & (at < 9), X, np.finfo(np.float32).min))
