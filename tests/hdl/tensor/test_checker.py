# amaranth: UnusedElaboratable=no

"""The checker: it finds in every word of bits the rule that the specification does, and stops there."""

import random
from collections import Counter

import pytest
from amaranth import ResetInserter, Signal

from neuroncore_rtl.hdl.tensor.checker import Checker
from neuroncore_rtl.spec.config import SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.spec.isa import TENSOR_FIELDS, LoadStationary, MultiplyMoving
from neuroncore_rtl.spec.isa.fields import pack
from neuroncore_rtl.spec.isa.rule import Rule
from neuroncore_rtl.spec.isa.tensor import TensorInstruction, tensor_violation
from tests.hdl.simulation import flow, simulate

SEED = 5
CONFIG = Config(rows=6, columns=9)

RULES = {
    Rule.OPCODE, Rule.FORMAT, Rule.OPERATION, Rule.SHAPE, Rule.PARTITIONS, Rule.ALIGNMENT, Rule.RANGE, Rule.STATE,
}  # fmt: skip
"""What a tensor instruction can break."""

LOADS = (
    LoadStationary(format=BF16, k=6, m=9, address=8),
    LoadStationary(format=FP32, half=1, k=1, m=1, address=SBUF_BYTES - 16),
    LoadStationary(format=INT8, k=3, m=5, address=SBUF_BYTES - 8),
)
MOVES = (
    MultiplyMoving(format=BF16, k=6, m=5, n=512, address=2, stride=2, psum=512),
    MultiplyMoving(format=FP32, half=1, k=1, m=1, n=4, address=SBUF_BYTES - 16, stride=4, psum=508),
    MultiplyMoving(format=INT8, k=2, m=4, n=300, address=SBUF_BYTES - 1 - 299 * 657, stride=657, psum=4095 - 299),
)

EDGES = {
    "k": (0, 1, CONFIG.rows, CONFIG.rows + 1, 2047),
    "m": (0, 1, CONFIG.columns, CONFIG.columns + 1, 2047, *(load.m + 1 for load in LOADS)),
    "n": (0, 1, 511, 512, 513, 1023),
    "address": (0, 1, 2, 4, SBUF_BYTES - 16, SBUF_BYTES - 4, SBUF_BYTES - 1, SBUF_BYTES, (1 << 18) - 1),
    "stride": (0, 1, 2, 4, 384, 65535),
    "psum": (0, 1, 511, 3584, 4095),
}
"""Values at which rules begin and end."""


def words(rng, count):
    """Return instruction words: legal ones with up to three fields changed, and any bits."""
    legal = [instruction.encode() for instruction in LOADS + MOVES]
    for _ in range(count):
        word = legal[rng.integers(len(legal))]
        values = TensorInstruction.unpack(word)
        for name in rng.choice([name for name, _ in TENSOR_FIELDS], rng.integers(4), replace=False):
            width = dict(TENSOR_FIELDS)[name]
            edge = rng.random() < 0.7 and name in EDGES
            values[name] = int(rng.choice(EDGES[name])) if edge else int(rng.integers(1 << width))
        yield pack(TENSOR_FIELDS, values, "tensor")


def run(sequences, **stalls):
    """Return of each sequence how it flows through a checker that is reset before it, and the error."""
    checker, reset = Checker(CONFIG), Signal()
    results = []

    async def bench(ctx):
        for sequence in sequences:
            seen = await flow(ctx, checker, sequence, quiet=2, **stalls)
            error = ctx.get(checker.error)
            results.append((seen, (error.cause, error.number) if error.valid else None))
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)

    simulate(ResetInserter(reset)(checker), bench)
    return results


def words_of(seen):
    return [instruction.as_bits() for _, instruction in seen.passed]


def expected(sequence):
    """Return how many words of a sequence pass, and the error, by the specification."""
    loaded = None
    for number, word in enumerate(sequence):
        values = TensorInstruction.unpack(word)
        broken = tensor_violation(values, CONFIG, loaded)
        if broken is not None:
            return number, (int(broken[0]), number)
        if values["opcode"] == LoadStationary.opcode:
            loaded = values["m"], values["dtype"] == INT8.code
    return len(sequence), None


def test_every_word_breaks_the_rule_that_the_specification_names(rng):
    setups = [(), *((load.encode(),) for load in LOADS)]
    sequences = [(*setups[rng.integers(len(setups))], word) for word in words(rng, 1500)]
    causes = Counter()
    for sequence, (seen, error) in zip(sequences, run(sequences), strict=True):
        count, broken = expected(sequence)
        assert error == broken, TensorInstruction.unpack(sequence[-1])
        assert words_of(seen) == list(sequence[:count])
        causes[Rule(broken[0]) if broken else None] += 1
    print(causes)
    assert set(causes) == RULES | {None}
    assert min(causes.values()) > 10


@pytest.mark.parametrize("stall", (0.0, 0.6))
def test_an_instruction_passes_each_cycle_and_an_error_ends_it(stall):
    legal = [instruction.encode() for instruction in (LOADS[0], MOVES[0], MOVES[0], LOADS[2], MOVES[2])] * 4
    illegal = pack(TENSOR_FIELDS, TensorInstruction.unpack(legal[0]) | {"k": 0}, "tensor")
    [(seen, error)] = run([[*legal, illegal, *legal]], stall=stall, pace=random.Random(SEED))
    assert words_of(seen) == legal
    assert error == (Rule.PARTITIONS, len(legal))
    # Nothing is there in the first cycle, and then something in each until the last one passes.
    assert seen.shown == list(range(1, seen.passed[-1][0] + 1))
    assert seen.taken == [0, *(cycle for cycle, _ in seen.passed)]
