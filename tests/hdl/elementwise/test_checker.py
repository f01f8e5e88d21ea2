# amaranth: UnusedElaboratable=no

"""The checker refuses what `spec.isa.elementwise.rules` refuses, with its cause, and lets nothing pass behind it."""

import random
from collections import Counter

import pytest
from amaranth import Const

from neuroncore_rtl.hdl.elementwise import checker as unit
from neuroncore_rtl.hdl.elementwise.checker import Checker
from neuroncore_rtl.spec.isa import SCALAR_OPCODES, VECTOR_OPCODES, Opcode, Rule, elementwise
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_RULES, Elementwise, elementwise_violation, is_integer
from tests.hdl.elementwise.instructions import CONFIGS, OPCODES, copy, legal_fields, near_word, random_word
from tests.hdl.simulation import flow, simulate
from tests.hdl.verdicts import judge

SEED = 1993


def checker(config, opcodes):
    return Checker(config, opcodes, lambda instruction: Const(0), lambda instruction: Const(1))


def verdicts_of(dut, words):
    """Return the verdict on each word: None and `integer`, or the cause."""
    verdicts = []
    for word, (cause, job) in zip(words, judge(dut, words), strict=True):
        assert cause or job.instruction.as_bits() == word
        verdicts.append((cause, None) if cause else (None, job.integer))
    return verdicts


def expected(config, opcodes, word):
    values = Elementwise.unpack(word)
    broken = elementwise_violation(values, config, opcodes)
    return (int(broken[0]), None) if broken else (None, int(is_integer(values)))


def compare(config, opcodes, words):
    """Judge words and compare; return how often each verdict came."""
    verdicts = verdicts_of(checker(config, opcodes), words)
    wanted = [expected(config, opcodes, word) for word in words]
    wrong = [
        f"{verdict}, not {want}, of {Elementwise.unpack(word)}"
        for word, verdict, want in zip(words, verdicts, wanted, strict=True)
        if verdict != want
    ]
    assert not wrong, f"{len(wrong)} of {len(words)} verdicts are wrong, the first: {wrong[0]}"
    return Counter(cause for cause, _ in verdicts)


def words_of(rng, config, opcodes, legal, near, wild):
    words = [Elementwise.pack(legal_fields(rng, config, opcodes)) for _ in range(legal)]
    words += [near_word(rng, config, opcodes) for _ in range(near)]
    return words + [random_word(rng, opcodes) for _ in range(wild)]


EVERY = set(ELEMENTWISE_RULES)
NEVER_OF_ACTIVATE = {Rule.ARITHMETIC, Rule.DESTINATION, Rule.ROUNDING, Rule.PORTS}
"""An activation is always FP32 and has one source."""


@pytest.mark.parametrize(
    ("shape", "opcodes", "counts", "rules"),
    [
        *((shape, VECTOR_OPCODES, (200, 1100, 200), EVERY) for shape in CONFIGS),
        ("8x4", SCALAR_OPCODES, (100, 800, 100), EVERY - NEVER_OF_ACTIVATE),
    ],
    ids=[*CONFIGS, "scalar"],
)
def test_verdicts_are_those_of_the_specification(shape, opcodes, counts, rules, rng):
    config = CONFIGS[shape]
    assert set(compare(config, opcodes, words_of(rng, config, opcodes, *counts))) == {None, *map(int, rules)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STATS_ELEMENTS", elementwise.STATS_ELEMENTS + 1),
        ("FUNCTION_COUNT", elementwise.FUNCTION_COUNT + 1),
        ("OUTPUTS", {}),
        ("OPERATIONS", {}),
    ],
)
def test_a_checker_with_another_rule_is_noticed(name, value, rng, monkeypatch):
    config = CONFIGS["4x4"]
    words = words_of(rng, config, OPCODES, 100, 300, 0)
    words.append(Elementwise.pack(copy(elementwise.STATS_ELEMENTS + 1, Opcode.BN_STATS)))
    words.append(Elementwise.pack(copy(1, Opcode.ACTIVATE, function=elementwise.FUNCTION_COUNT)))
    wanted = [expected(config, OPCODES, word) for word in words]
    monkeypatch.setattr(elementwise, name, value)
    monkeypatch.setattr(unit, "elementwise", elementwise)
    assert verdicts_of(checker(config, OPCODES), words) != wanted


def passed_on(dut, words, **stalls):
    """Return the flow of instruction words through a checker, and its error."""
    seen = []

    async def bench(ctx):
        seen.extend((await flow(ctx, dut, words, **stalls), ctx.get(dut.error)))

    simulate(dut, bench)
    return seen


def test_an_error_stops_what_follows_and_names_the_instruction(rng):
    """Instructions before the error come out, at full speed; none after it is taken."""
    config = CONFIGS["4x4"]
    words = [Elementwise.pack(legal_fields(rng, config, VECTOR_OPCODES)) for _ in range(6)]
    words[4] = 63
    seen, error = passed_on(checker(config, VECTOR_OPCODES), words)
    assert (error.valid, error.cause, error.number) == (1, Rule.OPCODE, 4)
    assert seen.taken == [Checker.INTERVAL * n for n in range(5)]
    passed = [(cycle, job.instruction.as_bits()) for cycle, job in seen.passed]
    assert passed == [(cycle + Checker.LATENCY, word) for cycle, word in zip(seen.taken, words[:4], strict=False)]


def test_a_verdict_waits_for_the_job_before(rng):
    """With the output held up, verdicts stay right and none is lost."""
    config = CONFIGS["8x4"]
    words = [Elementwise.pack(legal_fields(rng, config, VECTOR_OPCODES)) for _ in range(40)]
    seen, _ = passed_on(checker(config, VECTOR_OPCODES), words, stall=0.9, pace=random.Random(SEED))
    assert [job.instruction.as_bits() for _, job in seen.passed] == words
