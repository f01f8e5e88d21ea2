"""Random bits of the keys "rbg" and "unsafe_rbg", and of `lax.rng_bit_generator`, are those of JAX's CPU."""

import jax
import numpy as np
import pytest
from jax import lax, random

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.refusal import Refused
from tests.frontends.xla.results import compare, compare_all, run_text

ALGORITHMS = lax.RandomAlgorithm
SHAPES = [(8,), (), (3, 5), (5, 3, 7), (130,), (0, 2)]


def generated(algorithm, shape, dtype=np.uint32):
    return lambda state: lax.rng_bit_generator(state, shape, dtype, algorithm)


@pytest.mark.parametrize("algorithm", [ALGORITHMS.RNG_PHILOX, ALGORITHMS.RNG_THREE_FRY])
def test_bits_and_states_of_all_shapes_and_types(rng, algorithm):
    """Counters of 64 bits carry into their upper word; beyond it, Philox's carry into the key's, and states wrap."""
    ends = [(1, 2, 3, 4), (5, 6, 2**32 - 2, 7), (2**32 - 1, 9, 2**32 - 1, 2**32 - 1), (2**32 - 1,) * 4]
    states = [*np.array(ends, np.uint32), *rng.integers(0, 2**32, (2, 4), np.uint32)]
    cases = [(generated(algorithm, shape), state) for state, shape in zip(states, SHAPES, strict=True)]
    cases += [(generated(algorithm, (4, 3), dtype), states[1]) for dtype in (np.uint8, np.uint16)]
    compare_all(*cases, (generated(ALGORITHMS.RNG_DEFAULT, (9,)), states[2]))


@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg"])
def test_functions_of_keys(kind):
    def numbers(key):
        wide, *keys = random.fold_in(key, 5), *random.split(key, 3)
        many = jax.vmap(lambda key: random.bits(key, (3,)))(random.split(wide))
        return many, random.uniform(key, (4, 3)), *map(random.key_data, keys)

    compare(numbers, random.key(0, impl=kind))
    if kind == "rbg":
        compare(lambda key: random.normal(key, (4, 3)), random.key(0, impl=kind), tolerance=1e-5)
    same = jit(lambda key: key, preset="tiny", target="golden")(random.key(3, impl=kind))
    assert same.dtype == random.key(0, impl=kind).dtype


def test_a_key_of_a_loop_and_of_a_constant():
    def drawn(key):
        def step(_, carry):
            key, total = carry
            key, one = random.split(key)
            return key, total + random.bits(one, (5,))

        _, total = lax.fori_loop(0, 8, step, (key, random.bits(random.key(7, impl="unsafe_rbg"), (5,))))
        return total

    machine = compare(drawn, random.key(1, impl="unsafe_rbg"))
    assert "while" in machine.ir.lower()


def test_bits_on_the_rtl(rng):
    compare(
        generated(ALGORITHMS.RNG_THREE_FRY, (6,)), rng.integers(0, 2**32, 4, np.uint32), preset="nano", target="rtl"
    )


TEXT = """
func.func @main(%x: tensor<2xui32>) -> (tensor<2xui32>, {type}) {{
  %s = stablehlo.constant dense<[4294967298, 12884901889]> : tensor<{words}xui64>
  %t, %b = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<{words}xui64>) -> (tensor<{words}xui64>, {type})
  return %x, %b : tensor<2xui32>, {type}
}}"""


def test_a_constant_state_and_refusals():
    x = np.zeros(2, np.uint32)
    _, bits = run_text(TEXT.format(words=2, type="tensor<5xui32>"), x)
    state = np.array([2, 1, 1, 3], np.uint32)
    np.testing.assert_array_equal(bits, jax.jit(generated(ALGORITHMS.RNG_PHILOX, (5,)))(state)[1])
    with pytest.raises(Refused, match=r"random bits must be integers of a state of 2 uint64, not f32\[5\]"):
        run_text(TEXT.format(words=2, type="tensor<5xf32>"), x)
    with pytest.raises(Refused, match=r"not ui32\[5\] of ui64\[3\]"):
        run_text(TEXT.replace("dense<[4294967298, 12884901889]>", "dense<1>").format(words=3, type="tensor<5xui32>"), x)
