"""Stochastic rounding: unbiased, other words in each call and each round of a loop, replayable."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.options import options_of, rounding_seed_of
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.run.compiled import word_of_call
from neuroncore_rtl.run.compiled_function import load_model
from neuroncore_rtl.spec.formats import NARROW_FLOATS
from neuroncore_rtl.spec.isa import RECORD_BYTES, DmaCopy, Record

MACHINE = {"preset": "tiny", "target": "golden", "rounding": "stochastic"}
NARROW = (jnp.bfloat16, jnp.float16, jnp.float8_e4m3, jnp.float8_e5m2)


def wide(array) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


@pytest.mark.parametrize("kind", NARROW)
def test_the_mean_of_roundings_is_the_number(kind):
    number = np.float32(1.03)
    low = np.float64(np.float32(number).astype(kind))
    below, above = (low, low + wide(jnp.finfo(kind).eps)) if low <= number else (low - wide(jnp.finfo(kind).eps), low)
    x = np.full((16, 2000), number, np.float32)
    found = wide(jit(lambda x: x.astype(kind), **MACHINE)(x))
    assert {*np.unique(found)} == {below, above}
    share = (number - below) / (above - below)
    deviation = (above - below) * np.sqrt(share * (1 - share) / x.size)
    assert abs(found.mean() - number) < 4 * deviation < abs(low - number)


def test_a_representable_number_never_changes(rng):
    x = rng.normal(size=(6, 50)).astype(jnp.bfloat16)
    same, twice = jit(lambda x: (jnp.concatenate([x.T, x.T]), x * 2), **MACHINE)(x)
    np.testing.assert_array_equal(wide(same), wide(np.concatenate([x.T, x.T])))
    np.testing.assert_array_equal(wide(twice), 2 * wide(x))


def test_calls_differ_and_a_seed_replays_them(rng):
    x = rng.normal(size=(8, 100)).astype(np.float32)

    def calls(seed: int, count: int = 3) -> list[np.ndarray]:
        model = jit(lambda x: x.astype(jnp.bfloat16), rounding_seed=seed, **MACHINE)
        return [wide(model(x)) for _ in range(count)]

    first, again, other = calls(7), calls(7), calls(8)
    np.testing.assert_array_equal(first, again)
    everything = [*first, *other]
    for place, one in enumerate(everything):
        for two in everything[:place]:
            assert 0.1 < (one != two).mean() < 0.9
    model = jit(lambda x: x.astype(jnp.bfloat16), rounding_seed=7, **MACHINE)
    model.calls = 2
    np.testing.assert_array_equal(wide(model(x)), first[2])
    assert model.calls == 3


def test_each_rounding_of_a_program_has_other_words(rng):
    x = rng.normal(size=(8, 100)).astype(np.float32)
    one, two = jit(lambda x, y: (x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)), **MACHINE)(x, x)
    assert 0.1 < (wide(one) != wide(two)).mean() < 0.9


def test_words_of_calls_are_different():
    words = [word_of_call(3, call) for call in range(10_000)]
    assert words[0] == 3 and len({*words}) == len(words) and 0 <= min(words) and max(words) < 1 << 32


def test_a_file_has_the_seed(tmp_path, rng):
    x = rng.normal(size=(4, 60)).astype(np.float32)
    model = jit(lambda x: x.astype(jnp.bfloat16), rounding_seed=5, **MACHINE)
    model.lower(x).compile().save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz", target="golden")
    for _ in range(2):
        np.testing.assert_array_equal(wide(loaded(x)), wide(model(x)))


def test_only_seeds_change_in_an_image():
    model = jit(lambda x: jnp.tanh(x @ x).astype(jnp.bfloat16) + 1, **MACHINE).lower(np.ones((5, 5), np.float32))
    image = model.compile().compiled.image
    data, draws = image.seeded(0x89AB_CDEF), 0
    ends = []
    for block, records in zip(image.blocks, image.records, strict=True):
        for number, record in enumerate(records):
            first = block.address - image.base + number * RECORD_BYTES
            ends.append((first, first + RECORD_BYTES))
            before, after = (
                vars(Record.decode(bytes(some[first : first + RECORD_BYTES]), image.config).instruction)
                for some in (image.data, data)
            )
            draws += record.instruction.stochastic
            assert after == before | ({"seed": 0x89AB_CDEF} if record.instruction.stochastic else {})
    assert draws >= 2
    for first, end in ends:
        data[first:end] = image.data[first:end]
    assert data == image.data


def rounds(x, count):
    """Add a number below half a last place in each round of a loop, whose body is a loop itself."""
    inner = lambda _, one: one + jnp.bfloat16(0.25)  # noqa: E731
    return jax.lax.fori_loop(0, count, lambda i, one: jax.lax.fori_loop(0, 2 + 0 * count, inner, one), x)


def test_each_round_of_loops_has_other_words():
    x = np.full((8, 64), 64, jnp.bfloat16)
    (near,) = np.unique(wide(jit(rounds, preset="tiny", target="golden", rounding="nearest")(x, np.int32(100))))
    found = wide(jit(rounds, **MACHINE)(x, np.int32(100)))
    # A round adds 0.5 with probability 1/2; with the same words in all rounds, the deviation would be 50.
    assert near == 64
    assert abs(found.mean() - 114) < 4 * np.sqrt(200 * 0.0625 / x.size) and 2.5 < found.std() < 4.5


def test_the_hardware_draws_the_same_words_in_rounds():
    machine = MACHINE | {"target": "rtl"}
    model = jit(lambda x, n: jax.lax.fori_loop(0, n, lambda i, x: jnp.tanh(x) * 1.3, x), **machine)
    x = np.full((3, 8), 0.7, jnp.bfloat16)
    found = [wide(model(x, np.int32(2))) for _ in range(2)]
    assert model.result.bit_exact and (found[0] != found[1]).any()


@pytest.mark.parametrize("cast", [{"auto_cast": "matmult"}, {"auto_cast": "all", "auto_cast_type": "fp16"}])
def test_operands_of_products_are_rounded_stochastically(rng, cast):
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((9, 40), (40, 20)))
    model = jit(jnp.dot, **cast, **MACHINE)
    found = np.mean([wide(model(a, b)) for _ in range(24)], axis=0)
    exact = wide(a) @ wide(b)
    nearest = wide(jit(jnp.dot, preset="tiny", target="golden", **cast)(a, b))
    assert np.abs(found - exact).mean() < np.abs(nearest - exact).mean() / 2
    copies = [step.instruction for step in model.compiled.program.steps if isinstance(step.instruction, DmaCopy)]
    assert all(one.dst.format is one.src.format or one.dst.format not in NARROW_FLOATS for one in copies)


def test_small_steps_of_weights_are_not_lost():
    def step(weights, slopes):
        return (weights - 1e-3 * slopes).astype(weights.dtype)

    weights, slopes = np.ones((4, 64), jnp.bfloat16), np.ones((4, 64), np.float32)
    ends = {}
    for rounding in ("nearest", "stochastic"):
        model, ends[rounding] = jit(step, **{**MACHINE, "rounding": rounding}), weights
        for _ in range(100):
            ends[rounding] = model(ends[rounding], slopes)
    assert (wide(ends["nearest"]) == 1).all()
    assert abs(wide(ends["stochastic"]).mean() - 0.9) < 0.005


def test_variables_of_the_environment(monkeypatch):
    assert options_of().rounding == "nearest" and rounding_seed_of(None) == 0
    monkeypatch.setenv("NEURON_RT_STOCHASTIC_ROUNDING_EN", "1")
    monkeypatch.setenv("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "12")
    model = jit(jnp.sin, preset="tiny")
    assert model.options.rounding == "stochastic" and model.seed == 12
    assert jit(jnp.sin, preset="tiny", rounding="nearest", rounding_seed=3).seed == 3
    for name, word in (("EN", "yes"), ("SEED", "-1"), ("SEED", "a")):
        with monkeypatch.context() as changed:
            changed.setenv(f"NEURON_RT_STOCHASTIC_ROUNDING_{name}", word)
            with pytest.raises(Refused, match=f"NEURON_RT_STOCHASTIC_ROUNDING_{name}.* must be .*, not '{word}'"):
                jit(jnp.sin, preset="tiny")


def test_refusals():
    with pytest.raises(Refused, match="rounding must be one of nearest, stochastic, not 'up'"):
        jit(jnp.sin, preset="tiny", rounding="up")
    with pytest.raises(Refused, match="must have the units, VECTOR_RANDOM=1 and SCALAR_RANDOM=1"):
        jit(jnp.sin, preset="nano", target="golden", rounding="stochastic")(np.ones(3, np.float32))
