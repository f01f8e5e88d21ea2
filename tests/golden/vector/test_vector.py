"""Vector engine model against a lane-by-lane oracle."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.golden import arith, vector
from neuroncore_rtl.golden.elementwise import load_words, store_words
from neuroncore_rtl.golden.vector import VectorEngine, alu, bn_aggr, bn_stats, reduce_words
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, Access, AluOp, Elementwise, Opcode
from neuroncore_rtl.spec.isa.alu import BITWISE, REDUCTIONS
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import ordinary_codes, random_fp32, special_fp32
from tests.oracles import elementwise as oracle
from tests.oracles.instructions import random_instruction, random_memories
from tests.oracles.memories import changed_bytes
from tests.oracles.words import floats, words

MACHINES = [Config(rows=rows, columns=columns) for rows, columns in ((8, 8), (16, 8), (6, 6), (5, 12))]
SIZES = 1024, 512
PER_OPCODE = 60


def changed_by_one(rng, opcode, config, sizes=SIZES):
    instruction = random_instruction(rng, opcode, config, sizes)
    memories = random_memories(rng, config, sizes, instruction)
    ours = partial(VectorEngine(config).execute, instruction)
    theirs = partial(oracle.execute, Elementwise.unpack(instruction.encode(config)), config)
    return changed_bytes(memories, ours, theirs, instruction)


@pytest.mark.parametrize("opcode", sorted(VECTOR_OPCODES))
def test_instruction_is_the_oracle(opcode):
    seed = 1618 + opcode
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    written = sum(changed_by_one(rng, opcode, MACHINES[number % len(MACHINES)]) for number in range(PER_OPCODE))
    assert written > 20 * PER_OPCODE


def test_transpose_on_a_machine_of_several_blocks(rng):
    assert sum(changed_by_one(rng, Opcode.TRANSPOSE, Config(rows=64, columns=64), (2048, 2048)) for _ in range(4)) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opcode": Opcode.ACTIVATE}, "opcode must be one of the vector engine's, not .*ACTIVATE"),
        ({"partitions": 9}, r"partitions must end at 8, not 9 \(rule PARTITIONS\)"),
        ({"shape": (17,)}, r"bytes must lie from 0 to 64, not from 0 to 68"),
    ],
)
def test_refusals(change, message):
    memory = np.zeros((8, 64), np.uint8)
    a = Access(format=FP32, address=0, steps=(1,))
    legal = Elementwise(opcode=Opcode.TENSOR_COPY, partitions=8, shape=(4,), dst=a, a=a)
    with pytest.raises(ValueError, match=message):
        VectorEngine(MACHINES[0]).execute(dataclasses.replace(legal, **change), memory, memory)
    assert not memory.any()


def test_store_in_pieces_is_store_at_once(rng):
    values = random_fp32(rng, 100_000)
    for random in (None, rng.integers(0, 1 << 32, values.shape, np.uint32)):
        parts = [store_words(values[k::7], BF16, random=None if random is None else random[k::7]) for k in range(7)]
        whole = store_words(values, BF16, random=random)
        for k, part in enumerate(parts):
            assert_same_bits(part, whole[k::7])


def test_storing_bf16_is_rounding_to_nearest_even(rng):
    ties = (rng.integers(0, 1 << 16, 50_000, np.uint32) << 16) + 0x8000
    values = np.concatenate([random_fp32(rng, 100_000), special_fp32(), ties, ties - 1, ties + 1])
    stored, rounded = store_words(values, BF16), arith.round_fp32(values, BF16)
    assert stored.dtype == rounded.dtype
    assert np.array_equal(stored, rounded)


@pytest.mark.parametrize(
    ("op", "integer"),
    [(op, integer) for op in sorted(REDUCTIONS) for integer in (False, True) if integer or op not in BITWISE],
)
def test_reduction_is_one_operation_after_the_other(op, integer, rng):
    for n in (1, 2, 3, 7, 8, 100):
        x = rng.choice(np.concatenate((special_fp32(), ordinary_codes(rng, FP32, 500))), (300, n))
        x = x if integer else load_words(x, FP32)
        total = x[:, 0]
        for i in range(1, n):
            total = alu(op, total, x[:, i], integer)
        assert_same_bits(reduce_words(op, x, integer), total)


def test_a_sum_starts_with_its_first_element():
    assert reduce_words(AluOp.ADD, words([-0.0])) == words(-0.0)


@pytest.mark.parametrize("offset", (0.0, 1.0, 100.0))
def test_statistics_are_those_of_float64(offset, rng):
    x = (rng.standard_normal((64, 4 * 512)) + offset).astype(np.float32)
    stats = np.concatenate([bn_stats(words(x[:, k : k + 512])) for k in range(0, 2048, 512)], 1)
    mean, variance = np.moveaxis(floats(bn_aggr(stats)).astype(np.float64), -1, 0)
    exact = x.astype(np.float64)
    mean_error = np.abs(mean - exact.mean(1)).max()
    variance_error = np.abs(variance / exact.var(1) - 1).max()
    assert mean_error < 4e-7 * max(1, offset)
    assert variance_error < 2e-6 * max(1, offset)


def test_statistics_of_constants_and_of_one_element():
    assert floats(bn_stats(words([3.0] * 7))).tolist() == [4, 3, 0, 3, 3, 0]
    assert floats(bn_stats(words([5.0]))).tolist() == [1, 5, 0, 0, 0, 0]
    assert floats(bn_aggr(words([0, 9, 9, 4, 3, 8, 0, np.nan, 1]))).tolist() == [3, 2]
    assert np.isnan(floats(bn_aggr(words([0, 1, 1]))[1]))


def test_a_random_word_at_the_probability_is_kept():
    assert vector.dropped([0, 1, 2], words(2.0**-31)).tolist() == [True, True, False]
