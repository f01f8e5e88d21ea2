"""Shipped examples."""

import ast
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki import dialects, run_nki
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
    powers = np.exp(x)
    normed = x / np.sqrt((x * x).mean(1, keepdims=True)) * gain
    return [x, w, gain], [powers / powers.sum(1, keepdims=True), normed, (x @ w).T, np.where(x > x / 2, x, 0)], 1e-5


def triangle(p):
    x = normal(p, p + 3)
    numbers = np.broadcast_to(np.arange(p + 3), x.shape)
    return [x], [np.where(numbers > np.arange(p)[:, None], numbers - 1, x)], 0


SEQUENCES = [*(("engines", make) for make in (windowed_softmax, passed_round, without_largest, leaky, segments)),
             *(("tiles", make) for make in (functions, operations, bits, reductions, composed, triangle))]  # fmt: skip


@pytest.mark.parametrize("preset, lanes", [("tiny", 4), ("small", 16)])
@pytest.mark.parametrize("file, make", SEQUENCES)
def test_examples_are_those_of_numpy(file, make, preset, lanes):
    args, expected, most = make(lanes)
    done = run_kernel(f"frontends/nki/examples/{file}.py:{make.__name__}", *args, preset=preset)
    for found, wanted in zip(done.outputs, expected, strict=True):
        assert found.shape == wanted.shape and np.all(np.abs(found - wanted.astype(np.float64)) <= most)


def test_examples_with_random_numbers():
    x = normal(4, 500)
    kept, between, every = run_kernel("frontends/nki/examples/engines.py:random_numbers", x).outputs
    assert np.array_equal(kept[kept != 0], x[kept != 0]) and abs((kept == 0).mean() - 0.5) < 0.06
    assert between.min() >= 2 and between.max() <= 3 and abs(between.mean() - 2.5) < 0.04 and np.all(every == -1)
    kept, numbers = run_kernel("frontends/nki/examples/tiles.py:random_tiles", x).outputs
    assert np.array_equal(kept[kept != 0], x[kept != 0]) and abs((kept == 0).mean() - 0.5) < 0.06
    assert numbers.min() >= 0 and numbers.max() < 1 and abs(numbers.mean() - 0.5) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize("file, make", SEQUENCES)
def test_examples_on_the_rtl(file, make):
    args, _, _ = make(16)
    assert run_nki(f"frontends/nki/examples/{file}.py:{make.__name__}", *args, preset="small").run.bit_exact
