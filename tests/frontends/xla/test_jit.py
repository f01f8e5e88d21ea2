"""`jit`: arguments, programs, refusals, and a model on the RTL."""

from weakref import ref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.refusal import Refused
from tests.frontends.xla.results import compare


def layer(params, x):
    hidden = jax.nn.gelu(x @ params["up"] + params["bias"], approximate=False)
    return jax.nn.softmax(hidden @ params["down"])


def parameters(rng):
    shapes = {"up": (6, 10), "bias": (10,), "down": (10, 4)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_a_trained_step_on_the_rtl_is_bit_exact_and_close_to_jax(rng):
    params, x = parameters(rng), rng.normal(size=(5, 6)).astype(np.float32)
    labels = jax.nn.one_hot(np.arange(5) % 4, 4)

    def step(params, x, labels):
        def loss(params):
            return -jnp.mean(jnp.sum(labels * jnp.log(layer(params, x)), axis=1))

        value, slopes = jax.value_and_grad(loss)(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    model = jit(step, preset="tiny", target="rtl")
    value, trained = model(params, x, labels)
    assert model.result.bit_exact and model.result.compared > 1000
    right, other = jax.jit(step)(params, x, labels)
    np.testing.assert_allclose(value, right, rtol=1e-5)
    for name, array in trained.items():
        np.testing.assert_allclose(array, other[name], rtol=1e-4, atol=1e-6)
    assert "test_jit.py" in model.report and "utilisation" in model.report


def test_arguments_are_trees_and_static_ones_are_compiled_in(rng):
    def scaled(x, times, *, shift=0):
        return {"a": x["a"] * times + shift, "b": (x["b"], 3)}

    model = jit(scaled, preset="nano", target="golden", static_argnums=1, static_argnames="shift")
    x = {"a": rng.normal(size=(3,)).astype(np.float32), "b": np.int32(7)}
    for times, shift in ((2, 0), (3, 1)):
        found = model(x, times, shift=shift)
        np.testing.assert_array_equal(found["a"], x["a"] * np.float32(times) + np.float32(shift))
        assert int(found["b"][0]) == 7 and found["b"][1] == 3


def test_static_arguments_count_by_place_and_by_name_as_in_jax():
    def scaled(x, times=2):
        return x * times if isinstance(times, int | float) else x

    x = np.arange(4, dtype=np.int32)
    calls = [((x, 3), {}), ((x,), {"times": 4}), ((x,), {}), ((x, 1), {}), ((x, 1.0), {}), ((x, True), {})]
    calls += [((3.0,), {"times": 2}), ((5.0,), {"times": 2}), ((5.0,), {"times": 3})]
    for statics in ({"static_argnums": 1}, {"static_argnames": "times"}):
        ours, theirs = jit(scaled, preset="nano", target="golden", **statics), jax.jit(scaled, **statics)
        for args, named in calls:
            found, wanted = ours(*args, **named), theirs(*args, **named)
            assert (found.dtype, found.weak_type) == (wanted.dtype, wanted.weak_type)
            np.testing.assert_array_equal(found, wanted)
    with pytest.raises(Refused, match=r"static arguments must be hashable, not \[1\] of type list, argument 1"):
        jit(scaled, target="golden", static_argnums=1)(x, [1])


def test_results_are_weakly_typed_as_in_jax():
    def function(x, y):
        return x * 2, y + 1, jnp.full((3,), 2.0) + x, 3, True

    for x, y in ((2.5, 3), (np.float32(2.5), np.int8(3)), (jnp.asarray(2.0), jnp.arange(3))):
        found, wanted = jit(function, preset="nano", target="golden")(x, y), jax.jit(function)(x, y)
        assert [one.weak_type for one in found] == [one.weak_type for one in wanted]
        assert [(one * jnp.bfloat16(2)).dtype for one in found] == [(one * jnp.bfloat16(2)).dtype for one in wanted]
        assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_gradients_of_integers_have_no_elements():
    slope = jit(jax.grad(lambda n: (n * 2.0).sum(), allow_int=True), preset="nano", target="golden")(np.arange(3))
    assert slope.dtype == jax.dtypes.float0 and slope.shape == (3,)
    assert jit(lambda n: n, preset="nano", target="golden")(slope).dtype == jax.dtypes.float0


def test_a_second_call_of_the_same_shapes_does_not_compile(rng, monkeypatch):
    model = jit(lambda x: x + 1, preset="nano", target="golden")
    x = rng.normal(size=(2, 3)).astype(np.float32)
    model(x)
    first = model.compiled
    monkeypatch.setattr("neuroncore_rtl.frontends.xla.jitted.Jitted.lower", None)
    model(x * 2)
    assert model.compiled is first
    monkeypatch.undo()
    model(x.astype(np.int32))
    assert model.compiled is not first


def test_nothing_but_zeros_and_empty_arrays():
    compare(lambda x: (x, x + 1, jnp.zeros((2, 0))), np.zeros((0, 3), np.float32), preset="nano")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jnp.linalg.eigh(x @ x.T), "operations must be StableHLO's own, not a call of lapack_ssyevd"),
        (lambda x: jax.lax.complex(x, x), "operations must be on real numbers .*not complex"),
        (lambda x: jnp.fft.fft(x), "element types must be|operations must be"),
        (lambda x: jax.pure_callback(np.sin, x, x), "operations must be StableHLO's own, not a call of"),
        (lambda x: x % 2, "a machine for FMOD must have the unit, VECTOR_DIVISION=1"),
        (lambda x: 1 / x, "a machine for DIVIDE must have the unit, VECTOR_DIVISION=1"),
        (lambda x: jax.nn.softmax(x), "a machine for DIVIDE must have the unit, VECTOR_DIVISION=1"),
        (lambda x: jnp.sin(x), "a machine for sine and cosine must have the unit, SCALAR_TRIGONOMETRY=1"),
    ],
)
def test_a_refusal_names_the_rule_the_value_and_the_users_line(function, message):
    with pytest.raises(Refused, match=message) as refused:
        jit(function, preset="nano", target="golden")(np.ones((2, 2), np.float32))
    assert "test_jit.py:" in str(refused.value)


def test_values_of_64_bits_are_refused_with_their_place():
    with jax.enable_x64(True):
        with pytest.raises(Refused, match="array 1 of the arguments must be of f32, .*, not f64; use float32"):
            jit(lambda x, y: x + y, target="golden")(np.float32(1), np.arange(3.0))
        with pytest.raises(Refused, match=r"must be of f32, .*, not i64; use int32 \(.*test_jit.py:\d+\)"):
            jit(lambda x: jnp.argmax(x), target="golden")(np.arange(3, dtype=np.float32))


def test_a_chain_of_views_is_refused_beyond_the_recursion_limit(monkeypatch):
    def turned(x):
        for _ in range(150):
            x = x.reshape(2, 2)[::-1].T.reshape(4)
        return x

    monkeypatch.setattr("sys.getrecursionlimit", lambda: 400)
    monkeypatch.setattr("neuroncore_rtl.frontends.xla.emit.emission.Emission.view", _endless)
    with pytest.raises(Refused, match="a view of fewer than 400 other values one after another"):
        jit(turned, preset="nano", target="golden")(np.arange(4, dtype=np.float32))


def _endless(*args):
    return _endless(*args)


def test_random_keys_are_arguments_and_results():
    def split(key):
        return jax.random.split(key, 3), jax.random.bits(key, (5,))

    key = jax.random.key(3)
    keys, bits = jit(split, preset="tiny", target="golden")(key)
    wanted, numbers = split(key)
    assert keys.dtype == wanted.dtype and (jax.random.key_data(keys) == jax.random.key_data(wanted)).all()
    assert (bits == numbers).all()


def test_a_function_is_freed_when_nobody_needs_it():
    """Without a garbage collection, which takes longer."""
    machine = compare(lambda x: x + 1, np.ones(3, np.float32))
    freed = ref(machine)
    del machine
    assert freed() is None
