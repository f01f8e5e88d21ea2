"""Random graphs of all operations and types have the results of JAX's CPU."""

import jax
import numpy as np
import pytest

from neuroncore_rtl.frontends.xla import jit
from tests.frontends.xla.graphs import KINDS, RandomFunction
from tests.frontends.xla.results import differences

DEPTH = 6
NEAR = 2.0**-16
"""Bound of functions that are not exact, relative to numbers of 1 or more."""
_COMPILER = {"xla_allow_excess_precision": False}
"""XLA rounds each result to its type, as StableHLO says."""


def check(seed: int, preset: str = "tiny", target: str = "golden", depth: int = DEPTH, names: tuple = ()) -> None:
    """Compare a random function with JAX's CPU: bit for bit, near values apart."""
    function = RandomFunction(seed, depth, names)
    machine = jit(function, preset=preset, target=target, order="program")
    found = machine(*function.args)
    expected = machine.function.lower(*function.args).compile(_COMPILER)(*function.args)  # lowered once for both
    for one, other, near in zip(found, expected, function.near, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype), (seed, function.steps)
        wrong = differences(one, other)
        if near:
            x, y = one.astype(np.float64), other.astype(np.float64)
            with np.errstate(invalid="ignore"):
                wrong &= ~(np.abs(x - y) <= NEAR * np.maximum(1, np.abs(y)))
        assert not wrong.any(), (seed, function.steps, one[wrong], other[wrong])


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_random_graphs(first):
    for seed in range(first, first + 5):
        check(seed)


FUSED = (
    "binary", "unary", "compare", "clamp", "select", "convert", "pairs", "quotient", "broadcast", "concatenate",
    "reshape", "reverse", "transpose", "reduce",
)  # fmt: skip
"""Steps that one pass over rows may join."""


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_of_steps_of_a_pass(seed):
    check(seed, depth=16, names=FUSED)


def test_all_kinds_are_drawn():
    """The seeds above have every kind of step."""
    steps: set[str | None] = set()
    for seed in range(40):
        function = RandomFunction(seed, DEPTH)
        jax.eval_shape(function, *function.args)
        steps.update(function.steps)
    assert {*KINDS} <= steps, {*KINDS} - steps


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_more_random_graphs(first):
    for seed in range(first, first + 50):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_random_graphs_in_rtl(seed):
    check(seed, preset="tiny", target="rtl", depth=3)
