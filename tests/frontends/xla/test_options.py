"""Options: casts of products and of all values, and the flags of the environment."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.options import Options, options_of
from neuroncore_rtl.frontends.xla.refusal import Refused

MACHINE = {"preset": "tiny", "target": "golden"}
DTYPES = {"bf16": jnp.bfloat16, "fp16": np.float16, "fp8_e4m3": jnp.float8_e4m3}


def bits(array) -> np.ndarray:
    return np.asarray(array, np.float32).view(np.uint32)


def test_operands_of_products_are_rounded_only_if_that_is_allowed(rng):
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 6), (6, 7)))
    exact = a.astype(np.float64) @ b
    errors = {}
    for cast, kind in (("none", "bf16"), ("matmult", "fp16"), ("matmult", "bf16"), ("matmult", "fp8_e4m3")):
        model = jit(jnp.dot, preset="nano", target="golden", auto_cast=cast, auto_cast_type=kind)
        errors[cast, kind] = np.abs(model(a, b) - exact).max()
    none, half, brain, eight = errors.values()
    assert none < 1e-6 < half < brain < 0.1 < eight < 1


def everything(x, w):
    """Compute a product, a loop, a sort, a reduction, bits of floats, constants and integers of floats."""
    hidden = jax.lax.fori_loop(0, 99, lambda i, one: one * 0.9 + jnp.sin(one), x @ w)
    codes = jax.lax.bitcast_convert_type(hidden.astype(np.float32), jnp.int32)
    one = jax.lax.cond(x[0, 0] > 0, lambda: hidden + 0.1, lambda: hidden)
    return jnp.sort(one), one.max(1), codes, jnp.full((3,), 0.1), jnp.floor(one * 10).astype(jnp.int32)


@pytest.mark.parametrize("kind", DTYPES)
def test_all_casts_have_the_bits_of_the_same_function_of_narrow_arrays(rng, kind):
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 5)))
    found = jit(everything, auto_cast="all", auto_cast_type=kind, **MACHINE)(x, w)
    expected = jit(everything, **MACHINE)(x.astype(DTYPES[kind]), w.astype(DTYPES[kind]))
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.dtype == (np.int32 if place in (2, 4) else np.float32)
        wanted = np.full(3, 0.1).astype(DTYPES[kind]) if place == 3 else other
        np.testing.assert_array_equal(bits(one), bits(wanted), str(place))


def test_all_casts_to_tf32_leave_13_bits_zero(rng):
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 5)))
    found = jit(everything, auto_cast="all", auto_cast_type="tf32", **MACHINE)(x, w)
    for one in (found[0], found[1], found[3]):
        assert not (bits(one) & 0x1FFF).any()
    rounded = [(bits(one) + 0xFFF + (bits(one) >> 13 & 1) & ~np.uint32(0x1FFF)).view(np.float32) for one in (x, 0.1)]
    product = jit(lambda x: x * np.float32(0.1), auto_cast="all", auto_cast_type="tf32", **MACHINE)(x)
    exact = bits(rounded[0] * rounded[1])  # 22 bits, which FP32 holds
    np.testing.assert_array_equal(bits(product), exact + 0xFFF + (exact >> 13 & 1) & ~np.uint32(0x1FFF))


def test_an_argument_that_is_a_result_keeps_its_bits(rng):
    x = rng.normal(size=(3,)).astype(np.float32)
    same, changed = jit(lambda x: (x, x + 0), auto_cast="all", **MACHINE)(x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(changed, x.astype(jnp.bfloat16).astype(np.float32))
    np.testing.assert_array_equal(jit(lambda x: x, auto_cast="all", **MACHINE)(x), x)


@pytest.mark.parametrize("options", [{"auto_cast": "some"}, {"auto_cast_type": "int8"}])
def test_an_unknown_cast_is_refused(options):
    (name,) = options
    with pytest.raises(Refused, match=f"^{name} must be one of "):
        jit(jnp.sin, preset="nano", target="golden", **options)


@pytest.mark.parametrize(
    "flags, options, message",
    [
        ("", Options(), ""),
        ("--auto-cast=matmult --auto-cast-type=fp8_e4m3", Options("matmult", "fp8_e4m3"), ""),
        ("--auto-cast matmult --auto-cast-type tf32", Options("matmult", "tf32"), ""),
        ("--auto-cast all", Options("all", "bf16"), ""),
        (
            "--model-type transformer -O1 --tensorizer-options='--a --b=2' --auto-cast=none --lnc=1 --internal-x y",
            Options(),
            "--model-type, -O1, --tensorizer-options, --lnc, --internal-x: without effect here",
        ),
        ("--auto-casts=all -q", Options(), "--auto-casts, -q: unknown, and ignored"),
    ],
)
def test_flags_of_the_environment(monkeypatch, capsys, flags, options, message):
    monkeypatch.setenv("NEURON_CC_FLAGS", flags)
    for _ in range(2):
        assert options_of(auto_cast=None, auto_cast_type=None) == options
    assert capsys.readouterr().err == (f"NEURON_CC_FLAGS: {message}\n" if message else "")
    assert jit(jnp.sin, auto_cast="none", auto_cast_type="fp16").options == Options("none", "fp16")


@pytest.mark.parametrize("flags, rule", [("--auto-cast=some", "auto_cast must be one of none"), ("'", "No closing")])
def test_wrong_flags_are_refused(monkeypatch, flags, rule):
    monkeypatch.setenv("NEURON_CC_FLAGS", flags)
    with pytest.raises(Refused, match=f"NEURON_CC_FLAGS, .*: {rule}"):
        jit(jnp.sin)
