"""Scalar engine model against a lane-by-lane oracle."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.golden.elementwise import load_words, store_words
from neuroncore_rtl.golden.scalar import ScalarEngine, activate, softmax
from neuroncore_rtl.spec import formats, functions, isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from tests.oracles import elementwise as oracle
from tests.oracles import instructions, libraries
from tests.oracles.memories import changed_bytes

SEED = 1732
MACHINES = [Config(rows=rows, columns=columns) for rows, columns in ((8, 8), (16, 8), (6, 6))]
SIZES = 1024, 512
NAMES = list(functions.FUNCTIONS)


def function(code, z, alpha):
    return activate(NAMES[code], z, np.uint32(alpha).view(np.float32))[()]


def test_instruction_is_the_oracle(rng):
    written = stored = 0
    for config in MACHINES:
        engine = ScalarEngine(config)
        sums = [np.float32(0)] * config.partitions
        for _ in range(40):
            instruction = instructions.random_instruction(rng, isa.Opcode.ACTIVATE, config, SIZES)
            fields = isa.Elementwise.unpack(instruction.encode(config))
            theirs = partial(oracle.execute, fields, config, sums=sums, function=function)
            memories = instructions.random_memories(rng, config, SIZES, instruction)
            written += changed_bytes(memories, partial(engine.execute, instruction), theirs, instruction)
            assert_same_bits(engine.sums.view(np.float32), np.array(sums, np.float32))
            stored += instruction.sum_store
    assert written > 5000
    assert stored > 30


@pytest.mark.parametrize("fmt", (formats.FP32, formats.BF16))
def test_softmax_is_that_of_float64(fmt, rng):
    values = (rng.standard_normal((50, 300)) * 4).astype(np.float32).view(np.uint32)
    codes = store_words(values, fmt)
    x = load_words(codes, fmt).view(np.float32).astype(np.float64)
    exact = np.exp(x - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    ours = load_words(softmax(codes, fmt), fmt).view(np.float32)
    assert np.abs(ours / exact - 1).max() < (2.0**-8 if fmt is formats.BF16 else 4e-6)
    if fmt is formats.BF16:  # rounded once, at the end
        from_fp32 = softmax(load_words(codes, fmt))
        assert_same_bits(softmax(codes, fmt), libraries.ml_dtypes_round(from_fp32.ravel(), fmt).reshape(codes.shape))


def test_softmax_of_rows_does_not_depend_on_their_number(rng):
    values = rng.standard_normal((9, 20_000)).astype(np.float32).view(np.uint32)
    assert_same_bits(softmax(values), np.stack([softmax(row) for row in values]))
    assert softmax(values[:0]).shape == (0, 20_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opcode": isa.Opcode.TENSOR_COPY}, "opcode must be one of the scalar engine's, not .*TENSOR_COPY"),
        ({"function": 33}, r"function must be from 0 to 32, not 33 \(rule OPERATION\)"),
    ],
)
def test_refusals(change, message):
    memory, a = np.zeros((8, 64), np.uint8), isa.Access(format=formats.FP32, address=0, steps=(1,))
    legal = isa.Elementwise(opcode=isa.Opcode.ACTIVATE, partitions=8, shape=(4,), dst=a, a=a)
    with pytest.raises(ValueError, match=message):
        ScalarEngine(MACHINES[0]).execute(dataclasses.replace(legal, **change), memory, memory)
