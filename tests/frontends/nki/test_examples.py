"""Shipped examples."""

import ast
from math import erf
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki import dialects, run_nki
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.check.oracles.functions import reference
from tests.frontends.nki.kernels import run_kernel

EXAMPLES = sorted((ROOT / "frontends" / "nki" / "examples").glob("*.py"))

RNG = np.random.default_rng(61)


def names(file: Path, module: str) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == module}


def test_examples_use_every_call():
    assert not set(dialects.modules.CALLS) - set().union(*(names(file, "nisa") for file in EXAMPLES))
    assert not set(dialects.modules.MODULE_FUNCTIONS) - set().union(*(names(file, "nl") for file in EXAMPLES))
    older = [file for file in EXAMPLES if "neuronxcc" in file.read_text()]
    assert not {*dialects.isa_generate.OLDER, "memset"} - set().union(*(names(file, "nisa") for file in older))


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def windowed_softmax(p):
    x = normal(p, 24)
    low, high = (RNG.integers(a, b, (p, 1)).astype(np.float32) for a, b in ((0, 9), (10, 25)))
    powers = np.where((np.arange(24) >= low) & (np.arange(24) < high), np.exp(x), 0)
    return [x, low, high], [powers / powers.sum(1, keepdims=True)], 1e-6


def passed_round(p):
    x = normal(p, 24)
    return [x], [x + np.roll(x, -1, axis=0), x.max(0, keepdims=True)], 0


def without_largest(p):
    x = normal(p, 24)
    places = np.argsort(-x, axis=1)[:, :8]
    left = x.copy()
    np.put_along_axis(left, places, 0, 1)
    return [x], [left, places, np.cumsum(left, axis=1)], 1e-5


def leaky(p):
    x = normal(p, 24) * 4
    y = 2 * x - 1
    y = np.where(y > 0, y, y / 4)
    y = np.where(y < -3, -3, y)
    return [x], [y, (y * y).sum(1, keepdims=True), y.max(1, keepdims=True)], 1e-2


def segments(p):
    ids = np.int32([[0, 1, 1, 2, 2, 2, 0, 3, 3]])
    bounds = [[[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]]]
    return [ids], [np.array(bounds), np.array([[1, 2, 3, 4, 5, 7, 8, -1, -1, 7]])], 0


def functions(p):
    x = np.exp(normal(p, 24))
    named = (
        "abs arctan cos erf derf exp gelu gelu_sigmoid dgelu_sigmoid gelu_tanh dgelu ln mish - 1/ relu rsqrt sigmoid "
        "sign silu dsilu sin softplus sqrt square tan tanh ! ceil floor trunc"
    ).split()
    plain = {"-": -x, "1/": 1 / x, "tan": np.tan(x.astype(np.float64)), "!": x == 0}
    plain |= {name: getattr(np, name)(x) for name in ("ceil", "floor", "trunc")}
    theirs = np.stack([plain[name] if name in plain else reference(name, x) for name in named])
    return [x], [theirs], np.maximum(np.abs(theirs), 1) * 4e-7


def operations(p):
    a, b = np.abs(normal(p, 24)), np.round(normal(p, 24) * 2)
    b[b == 0] = 1
    a[:, ::3] = b[:, ::3] = 2
    larger = np.abs(a) > np.abs(b)
    theirs = [np.where(larger, a, b), a + b, a / b, a == b, a > b, a >= b, a < b, a <= b]
    theirs += [np.logical_and(a, b), np.logical_or(a, b), np.logical_xor(a, b)]
    theirs += [np.maximum(a, b), np.minimum(a, b), a * b, a != b, np.power(a.astype(np.float64), b), a - b]
    theirs += [np.where(larger, b, a), np.fmod(a, b), np.mod(a, b)]
    return [a, b], [theirs := np.stack(theirs)], np.maximum(np.abs(theirs), 1) * 1e-6


def bits(p):
    a, b = RNG.integers(-(2**31), 2**31, (p, 24)).astype(np.int32), RNG.integers(0, 32, (p, 24)).astype(np.int32)
    return [a, b], [np.stack([a & b, a | b, a ^ b, a << b, a >> b, ~a])], 0


def reductions(p):
    x = normal(p, 24)
    x[1, 3] = 0
    theirs = [x.sum(1), x.prod(1), x.max(1), x.min(1), x.mean(1), x.var(1), x.all(1)]
    return [x], [np.stack(theirs)[..., None]], 1e-5


def composed(p):
    x, w, gain = normal(p, p), normal(p, p), normal(1, p)
    normed = x / np.sqrt((x * x).mean(1, keepdims=True)) * gain
    return [x, w, gain], [softmax(x), normed, (x @ w).T, np.where(x > x / 2, x, 0)], 1e-5


def triangle(p):
    x = normal(p, p + 3)
    numbers = np.broadcast_to(np.arange(p + 3), x.shape)
    return [x], [np.where(numbers > np.arange(p)[:, None], numbers - 1, x)], 0


def attention(p):
    q, k, v = normal(p, 3 * p), normal(p, 3 * p), normal(3 * p, p)
    scores = np.where(np.tri(3 * p) > 0, q.T @ k / np.sqrt(p), -1e9)
    return [(one, "bfloat16") for one in (q, k, v)], [softmax(scores) @ v], 0.06


def normalised(p):
    x, gamma = normal(2 * p + 1, 60), normal(1, 60)
    centred = x - x.mean(1, keepdims=True)
    return [x, gamma], [centred / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma], 1e-5


def decayed_sums(p):
    x, decay = normal(p, 40), np.abs(normal(p, 1)) / 2
    sums = np.zeros((p, 40), np.float32)
    for i in range(40):
        sums[:, i] = x[:, i] + (decay[:, 0] * sums[:, i - 1] if i else 0)
    places = np.argsort(-sums, axis=1, kind="stable")[:, :8]
    return [x, decay], [sums, np.take_along_axis(sums, places, 1), places], 1e-5


def gated(p):
    x = normal(p, 24)
    return [x], [2 * np.where(x > 0.5, x, np.arange(24) / 24).T], 1e-6


def softmax_rows(p):
    x = normal(2 * p + 3, 30)
    return [x], [softmax(x)], 1e-6


def added_on_grid(p):
    a, b = normal(3 * p, 20), normal(3 * p, 20)
    return [a, b], [a + b], 0


def product(p):
    x, w, bias = normal(p - 1, 3 * p), normal(3 * p, p) / np.float32(4), normal(p, 1)
    sums = (x @ w).T + bias
    return [x, w, bias], [sums * (1 + np.vectorize(erf)(sums / np.sqrt(2))) / 2], 1e-5


def statistics(p):
    x = normal(p, 40)
    return [x], [np.stack([x.mean(1), x.var(1), np.abs(x).max(1)], 1), x[:, ::2]], 1e-6


def expert_rows(p):
    x, weights, tokens = normal(3 * p, p), normal(3, p, p), RNG.permutation(3 * p)[:p, np.newaxis].astype(np.int32)
    tokens[[1, p - 1], 0] = -1, 3 * p
    expected, kept = np.zeros((3 * p, p), np.float32), [row for row in tokens[:, 0] if 0 <= row < 3 * p]
    expected[kept] = x[kept] @ weights[2]
    return [x, weights, tokens, np.array([[2]], np.int32)], [expected], 1e-5


def exponentials_of_some(p):
    x = normal(4 * p, 12)
    return [x, np.array([[3]], np.int32)], [np.where(np.arange(4 * p)[:, None] < 3 * p, np.exp(x), 1)], 1e-5


def dominant(p):
    a = normal(p, p) + 2
    a += a.T
    v, steps, moved = np.ones((p, 1)), 0, 1
    while moved > 1e-3:
        last, v, steps = v, a @ v / np.linalg.norm(a @ v), steps + 1
        moved = np.linalg.norm(v - last)
    return [a], [v, np.array([[steps]])], 1e-5


def looked_up(p):
    x, places = normal(p, 20), RNG.integers(0, 20, (p, 5)).astype(np.int32)
    return [x, places, np.array([[13]], np.int32)], [np.take_along_axis(x, places, 1), x[:, 13:17]], 0


def shared_places(p):
    x, places = normal(p, 30), RNG.integers(0, 29, (p, 3)).astype(np.int32)
    chosen = places.T.reshape(3, 16)
    return [x, places], [np.stack([x[:, chosen], x[:, chosen + 1]], -1)], 0


def added_rows(p):
    table, x, rows = normal(2 * p + 1, 9), normal(p, 9), RNG.permutation(2 * p + 1)[:p, np.newaxis].astype(np.int32)
    rows[2] = -7
    expected, kept = table.copy(), rows[:, 0] >= 0
    expected[rows[kept, 0]] += x[kept]
    return [table, x, rows], [expected], 0


def repeated(p):
    values = RNG.integers(0, 4, (1, 7)).astype(np.int32)
    same = values.T == values
    before = np.where(same & np.tri(7, k=-1, dtype=bool), np.arange(7), -1).max(1)
    return [values, 5], [same.sum(1)[np.newaxis], before[np.newaxis]], 0


CASES = [
    *(("engines", make) for make in (windowed_softmax, passed_round, without_largest, leaky, segments)),
    *(("tiles", make) for make in (functions, operations, bits, reductions, composed, triangle)),
    *(("newer", make) for make in (attention, normalised, decayed_sums, gated, expert_rows, looked_up)),
    *(("older", make) for make in (softmax_rows, added_on_grid, product, statistics, added_rows, repeated)),
    *(("loops", make) for make in (exponentials_of_some, dominant)),
]
ON_16 = ("newer", shared_places)
"""An example that needs 16 partitions."""

QUICK = (gated, statistics, expert_rows, repeated)


def run_example(file, make, preset, on, folder):
    args, expected, most = make(PRESETS[preset].rows)
    with recording_in(folder):
        done = run_nki(f"frontends/nki/examples/{file}.py:{make.__name__}", *args, preset=preset, on=on)
    for found, wanted in zip(done.outputs, expected, strict=True):
        assert found.shape == wanted.shape and np.all(np.abs(found - wanted.astype(np.float64)) <= most)
    return done.run


@pytest.mark.parametrize("preset, file, make", [*(("tiny", *one) for one in CASES), ("small", *ON_16)])
def test_examples_are_those_of_numpy(file, make, preset, tmp_path):
    run_example(file, make, preset, "golden", tmp_path)


@pytest.mark.parametrize("file, make", [one for one in CASES if one[1] in QUICK])
def test_examples_on_the_rtl(file, make, tmp_path):
    run = run_example(file, make, "tiny", "rtl", tmp_path)
    assert run.bit_exact and {Path(line.file).name for line in run.lines} == {f"{file}.py"}


@pytest.mark.slow
@pytest.mark.parametrize("file, make", [*CASES, ON_16])
def test_all_examples_on_the_rtl(file, make, tmp_path):
    assert run_example(file, make, "small", "rtl", tmp_path).bit_exact


def test_examples_with_random_numbers():
    x = normal(4, 500)
    kept, between, every = run_kernel("frontends/nki/examples/engines.py:random_numbers", x).outputs
    assert np.array_equal(kept[kept != 0], x[kept != 0]) and abs((kept == 0).mean() - 0.5) < 0.06
    assert between.min() >= 2 and between.max() <= 3 and abs(between.mean() - 2.5) < 0.04 and np.all(every == -1)
    kept, numbers = run_kernel("frontends/nki/examples/tiles.py:random_tiles", x).outputs
    assert np.array_equal(kept[kept != 0], x[kept != 0]) and abs((kept == 0).mean() - 0.5) < 0.06
    assert numbers.min() >= 0 and numbers.max() < 1 and abs(numbers.mean() - 0.5) < 0.04
