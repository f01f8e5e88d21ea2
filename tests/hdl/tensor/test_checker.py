from collections import Counter

import pytest

from neuroncore_rtl.hdl.tensor.checker import TensorChecker
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.spec.isa import TENSOR_FIELDS, LoadStationary, MultiplyMoving, Rule, fields, tensor
from tests.hdl.simulation import slow
from tests.hdl.verdicts import assert_verdicts, pass_on

SEED = 5
CONFIG = Config(rows=6, columns=9)
SBUF = CONFIG.sbuf_bytes
NARROW = Config(rows=6, columns=9, significand_bits=8)
QUARTERED = Config(rows=12, columns=16)
"""A machine on which operands and results may start at any quadrant of the array."""

SMALL = Config(rows=6, columns=9, sbuf_bytes=3072, psum_words=64)
"""A machine with small memories."""

RULES = {
    Rule.OPCODE, Rule.FORMAT, Rule.OPERATION, Rule.SHAPE, Rule.PARTITIONS, Rule.ALIGNMENT, Rule.RANGE, Rule.STATE,
}  # fmt: skip

PLACED = (
    LoadStationary(format=BF16, k=4, m=7, address=16, row=4, column=8),
    LoadStationary(format=FP32, k=4, m=4, address=0, row=8, column=12),
    LoadStationary(format=INT8, k=2, m=3, address=4, row=4, column=4),
    MultiplyMoving(format=BF16, k=4, m=3, n=9, address=2, stride=2, psum=0, row=8, column=12),
    MultiplyMoving(format=INT8, k=3, m=3, n=9, address=1, stride=1, psum=0, row=4, column=4),
)
LOADS = (
    LoadStationary(format=BF16, k=6, m=9, address=8),
    LoadStationary(format=FP32, half=1, k=1, m=1, address=SBUF - 16),
    LoadStationary(format=INT8, k=3, m=5, address=SBUF - 8),
)
MOVES = (
    MultiplyMoving(format=BF16, k=6, m=5, n=512, address=2, stride=2, psum=512),
    MultiplyMoving(format=FP32, half=1, k=1, m=1, n=4, address=SBUF - 16, stride=4, psum=508),
    MultiplyMoving(format=INT8, k=2, m=4, n=300, address=SBUF - 1 - 299 * 657, stride=657, psum=4095 - 299),
)

SMALLEST = (
    LoadStationary(format=FP32, half=1, k=1, m=1, address=SMALL.sbuf_bytes - 16),
    LoadStationary(format=INT8, k=3, m=9, address=0),
    MultiplyMoving(format=FP32, k=1, m=1, n=4, address=SMALL.sbuf_bytes - 16, stride=4, psum=60),
    MultiplyMoving(format=INT8, k=2, m=4, n=64, address=0, stride=48, psum=448),
)

ENDS = [end - below for end in (SMALL.sbuf_bytes, SBUF) for below in (16, 4, 1, 0)]
EDGES = {
    "k": (0, 1, CONFIG.rows, CONFIG.rows + 1, 2047),
    "m": (0, 1, CONFIG.columns, CONFIG.columns + 1, 2047, *(load.m + 1 for load in LOADS)),
    "n": (0, 1, 63, 64, 65, 511, 512, 513, 1023),
    "address": (0, 1, 2, 4, *ENDS, (1 << 18) - 1),
    "stride": (0, 1, 2, 4, 384, 65535),
    "psum": (0, 1, 63, 448, 511, 512, 3584, 4095),
    "row": (0, 1, 2, 3, 4, 8, 12, 1023),
    "column": (0, 1, 3, 4, 8, 9, 12, 16, 1023),
}
"""Field values at the borders of the rules, by field."""


def words(rng, legal, count):
    legal = [instruction.encode() for instruction in legal]
    for _ in range(count):
        word = legal[rng.integers(len(legal))]
        values = tensor.TensorInstruction.unpack(word)
        for name in rng.choice([name for name, _ in TENSOR_FIELDS], rng.integers(4), replace=False):
            width = dict(TENSOR_FIELDS)[name]
            edge = rng.random() < 0.7 and name in EDGES
            values[name] = int(rng.choice(EDGES[name])) if edge else int(rng.integers(1 << width))
        yield fields.pack(TENSOR_FIELDS, values, "tensor")


def violations_of(words, config):
    loaded = None
    for word in words:
        values = tensor.TensorInstruction.unpack(word)
        yield (broken := tensor.tensor_violation(values, config, loaded))
        if broken:
            loaded = None
        elif values["opcode"] == LoadStationary.opcode:
            loaded = range(values["column"], values["column"] + values["m"]), values["dtype"] == INT8.code


@pytest.mark.parametrize(
    ("config", "legal"),
    [(CONFIG, LOADS + MOVES), *slow((NARROW, LOADS + MOVES)), (QUARTERED, PLACED), *slow((SMALL, SMALLEST))],
)
def test_every_word_breaks_the_rule_that_the_specification_names(config, legal, rng):
    setups = [(), *((one.encode(),) for one in legal if isinstance(one, LoadStationary))]
    given = [word for last in words(rng, legal, 1500) for word in (*setups[rng.integers(len(setups))], last)]
    violations = list(violations_of(given, config))
    jobs = assert_verdicts(TensorChecker(config), given, violations, RULES, late=True)
    assert all(job is None or job.as_bits() == word for word, job in zip(given, jobs, strict=True))
    assert min(Counter(broken and broken[0] for broken in violations).values()) > 10


@pytest.mark.parametrize("stall", (0.0, 0.6))
def test_an_instruction_per_cycle_until_an_error(stall):
    legal = [instruction.encode() for instruction in (LOADS[0], MOVES[0], MOVES[0], LOADS[2], MOVES[2])] * 4
    illegal = fields.pack(TENSOR_FIELDS, tensor.TensorInstruction.unpack(legal[0]) | {"k": 0}, "tensor")
    played, valid_cycles, error = pass_on(TensorChecker(CONFIG), [*legal, illegal, *legal], stall)
    assert played.payloads["o"] == legal and error == (Rule.PARTITIONS, len(legal))
    # Output is valid from the second cycle until the last instruction is accepted.
    assert valid_cycles == list(range(1, played.cycles["o"][-1] + 1))
    assert played.cycles["i"] == [0, *played.cycles["o"]]
