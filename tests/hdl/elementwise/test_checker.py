# amaranth: UnusedElaboratable=no

"""The checker refuses what `spec.isa.elementwise.rules` refuses, with its cause, and lets nothing pass behind it."""

from collections import Counter

import pytest
from amaranth import Const, Value

from neuroncore_rtl.hdl.elementwise import checker as unit
from neuroncore_rtl.hdl.elementwise.checker import Checker
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import SCALAR_OPCODES, VECTOR_OPCODES, Rule, elementwise
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_RULES, Elementwise, elementwise_violation, is_integer
from tests.hdl.elementwise.instructions import legal_fields, near_word, random_word
from tests.hdl.simulation import simulate
from tests.hdl.verdicts import judge

SEED = 1993

CONFIGS = {
    "4x4": Config(rows=4, columns=4),
    "6x4": Config(rows=6, columns=4),
    "4x8": Config(rows=4, columns=8),
    "8x4": Config(rows=8, columns=4),
}


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


@pytest.mark.parametrize("shape", CONFIGS)
def test_vector_verdicts_are_those_of_the_specification(shape, rng):
    config = CONFIGS[shape]
    seen = compare(config, VECTOR_OPCODES, words_of(rng, config, VECTOR_OPCODES, 200, 1100, 200))
    assert set(seen) == {None, *(int(rule) for rule in ELEMENTWISE_RULES)}


def test_scalar_verdicts_are_those_of_the_specification(rng):
    config = CONFIGS["8x4"]
    seen = compare(config, SCALAR_OPCODES, words_of(rng, config, SCALAR_OPCODES, 100, 800, 100))
    never = {
        Rule.ARITHMETIC,
        Rule.DESTINATION,
        Rule.ROUNDING,
        Rule.PORTS,
    }  # an activation is always FP32 and has one source
    assert set(seen) == {None, *(int(rule) for rule in ELEMENTWISE_RULES - never)}


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
    opcodes = VECTOR_OPCODES | SCALAR_OPCODES
    words = words_of(rng, config, opcodes, 100, 300, 0)
    border = {
        "opcode": 9,
        "count0": elementwise.STATS_ELEMENTS + 1,
        "count1": 1,
        "count2": 1,
        "count3": 1,
        "partitions": 1,
        "dst_step0": 1,
    }
    words.append(Elementwise.pack(Elementwise.unpack(0) | border))
    border |= {"opcode": 32, "count0": 1, "function": elementwise.FUNCTION_COUNT}
    words.append(Elementwise.pack(Elementwise.unpack(0) | border))
    wanted = {word: expected(config, opcodes, word) for word in words}
    monkeypatch.setattr(elementwise, name, value)
    monkeypatch.setattr(unit, "elementwise", elementwise)
    verdicts = verdicts_of(checker(config, opcodes), words)
    assert any(verdict != wanted[word] for word, verdict in zip(words, verdicts, strict=True))


def test_an_error_stops_what_follows_and_names_the_instruction(rng):
    """Instructions before the error come out, at full speed; none after it is taken."""
    config = CONFIGS["4x4"]
    words = [Elementwise.pack(legal_fields(rng, config, VECTOR_OPCODES)) for _ in range(6)]
    words[4] = 63
    dut = checker(config, VECTOR_OPCODES)
    passed, taken = [], []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for cycle in range(60):
            ctx.set(Value.cast(dut.i.payload), words[min(len(taken), 5)])
            if ctx.get(dut.i.ready):
                taken.append(cycle)
            if ctx.get(dut.o.valid):
                passed.append((cycle, ctx.get(Value.cast(dut.o.payload.instruction))))
            await ctx.tick()
        assert (
            ctx.get(dut.error.as_value())
            == dut.error.shape().const({"valid": 1, "cause": Rule.OPCODE, "number": 4}).as_value().value
        )
        assert not ctx.get(dut.busy)

    simulate(dut, bench)
    assert taken == [Checker.INTERVAL * n for n in range(5)]
    assert passed == [(cycle + Checker.LATENCY, word) for cycle, word in zip(taken, words[:4], strict=False)]


def test_a_verdict_waits_for_the_job_before(rng):
    """With the output held up, verdicts stay right and none is lost."""
    config = CONFIGS["8x4"]
    words = [Elementwise.pack(legal_fields(rng, config, VECTOR_OPCODES)) for _ in range(40)]
    dut = checker(config, VECTOR_OPCODES)
    passed = []

    async def bench(ctx):
        taken = 0
        for _ in range(4000):
            ctx.set(dut.i.valid, taken < len(words))
            ctx.set(Value.cast(dut.i.payload), words[min(taken, len(words) - 1)])
            ready = int(rng.random() < 0.1)
            ctx.set(dut.o.ready, ready)
            taken += ctx.get(dut.i.valid) & ctx.get(dut.i.ready)
            if ready and ctx.get(dut.o.valid):
                passed.append(ctx.get(Value.cast(dut.o.payload.instruction)))
            await ctx.tick()
            if len(passed) == len(words):
                break

    simulate(dut, bench)
    assert passed == words
