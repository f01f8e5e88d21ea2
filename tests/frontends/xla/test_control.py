"""Loops and branches: results equal JAX's, in the controller's form and as operations."""

from functools import partial

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from neuroncore_rtl.kernels.program import flow
from tests.frontends.xla.results import compare, compare_all, compare_calls

_DRAWN = np.random.default_rng(11)


def _floats(*shape: int) -> np.ndarray:
    """Return small multiples of 1/8, whose sums are exact."""
    return (_DRAWN.integers(-64, 64, shape) / 8).astype(np.float32)


@pytest.fixture(params=["short", "long"])
def form(request, monkeypatch) -> str:
    """Expand what is short, or nothing."""
    if request.param == "long":
        monkeypatch.setattr("neuroncore_rtl.frontends.xla.expand.control._COST", 0)
        monkeypatch.setattr("neuroncore_rtl.frontends.xla.expand.control._OPERATIONS", -1)
    return request.param


def _loops(program) -> int:
    """Return the number of loops of a program."""
    return sum(operation.code.name == "AGAIN" for operation in program.flow.operations())


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_loops_of_known_rounds_count(form, rounds):
    def function(x, y):
        return lax.fori_loop(2, 2 + rounds, lambda i, c: (c[1], c[0] - i * y, c[2] + i), (x, y, 0))

    found = compare(function, _floats(3, 5), _floats(3, 5))
    assert _loops(found.compiled.program) == (form == "long" and rounds > 0)


def test_loops_count_between_values():
    def function(first, limit, x):
        return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, c[1] + c[0]), (first, x))

    compare_calls(function, *((*pair, _floats(4)) for pair in ((0, 7), (3, 3), (5, -5), (-4, 2))))


@pytest.mark.parametrize("of", [np.int32, np.uint32, np.int8, np.float32])
def test_counters_have_steps_and_types(form, of):
    def function(x, step, limit):
        return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + of(step), c[1] + 1), (of(0), x))

    compare_all(*((partial(function, step=s, limit=n), _floats(4)) for s, n in ((3, 11), (5, 10), (1, 2))))


def test_carried_values_change_places(form):
    def function(a, b, c, n):
        return lax.fori_loop(0, n, lambda i, t: (t[1].T, t[2], t[0][::-1], t[3]), (a, b, c, b[0]))

    compare(function, *(_floats(3, 3) for _ in range(3)), 50)


def test_loops_run_while_a_condition_of_data_holds():
    def function(n):
        def body(c):
            return jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1

        return lax.while_loop(lambda c: c[0] > 1, body, (n, 0))

    compare_calls(function, (0,), (1,), (7,), (27,))


def test_conditions_of_arrays_may_reduce_them():
    compare(lambda x: lax.while_loop(lambda x: jnp.max(jnp.abs(x)) > 0.5, lambda x: x * 0.5, x), _floats(4, 6))


def test_values_of_a_round_are_not_reused_outside(form):
    """The transposed copy of a value from outside is made in a branch; what reads it later makes its own."""

    def function(i, x):
        turned = x.T.reshape(-1)
        y = lax.cond(i > 0, lambda: jnp.stack([turned, turned + 1]), lambda: jnp.zeros((2, x.size), x.dtype))
        return y, turned * 2

    compare_calls(function, *((index, _floats(3, 5)) for index in (0, 1)))


def test_switches_take_one_branch(form):
    def function(i, x, y):
        branches = [lambda x: (x, y), lambda x: (x + 1, x), lambda x: (x * y, -y)]
        return lax.switch(i, branches, x)

    indices = -(1 << 31), -1, 0, 1, 2, 3, (1 << 31) - 1
    compare_calls(function, *((index, _floats(3, 5), _floats(3, 5)) for index in indices))


def test_conditionals_take_one_branch(form):
    calls = ((flag, _floats(40)) for flag in (False, True))
    found = compare_calls(lambda p, x: lax.cond(p, lambda x: x - 1, lambda x: x * x, x), *calls)
    assert _loops(found.compiled.program) == (2 if form == "long" else 0)


def _nested(x, n):
    def outer(i, c):
        c = lax.fori_loop(0, i, lambda j, d: d + j * x, c)
        return lax.cond(i % 2 == 0, lambda c: -c, lambda c: lax.fori_loop(0, 2, lambda _, c: c + i, c), c)

    return lax.fori_loop(0, n, outer, x)


def test_loops_and_branches_nest(form):
    compare_calls(_nested, *((_floats(5), rounds) for rounds in (0, 1, 6)))


@pytest.mark.parametrize("usual", [1000, pytest.param(flow.LOOP_ROUNDS, marks=pytest.mark.slow)])
def test_long_loops_raise_the_limit_of_rounds(usual, monkeypatch):
    monkeypatch.setattr(flow, "LOOP_ROUNDS", usual)
    rounds = usual * 6 // 5
    found = compare(lambda x: lax.fori_loop(0, rounds, lambda i, c: c ^ i, x), 5)
    assert found.compiled.program.flow.rounds >= rounds


def test_keys_of_jax_random_need_no_loop():
    found = compare(lambda key: jax.random.bits(key, (7,)), jax.random.PRNGKey(3))
    assert _loops(found.compiled.program) == 0


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_loops_and_branches_run_in_rtl(form):
    compare(_nested, _floats(5), 3, preset="nano", target="rtl")


@pytest.mark.parametrize("length, reverse", [(1, False), (5, True), (40, False)])
def test_scans_stack_their_outputs(form, length, reverse):
    def function(start, x):
        return lax.scan(lambda c, y: ((c[1], c[0] + y), (c[0] - y, c[1])), (start, start[::-1]), x, reverse=reverse)

    compare(function, _floats(3), _floats(length, 3))
