"""Illegal instructions: an engine reports the rule, does not write, and stops."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.run.elementwise import expected_memories, work_of
from neuroncore_rtl.run.harness.engines.elementwise import ENGINES, EngineRecord
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec.isa import SCALAR_OPCODES, VECTOR_OPCODES, Rule
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_RULES, Elementwise, elementwise_violation
from neuroncore_rtl.tb.stimulus.core_illegal import illegal_word, random_word
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program
from tests.hdl.tensor.engines import faulty
from tests.tb.tests.instructions import BOTH, IMAGE, SHARED, SMALLEST, smallest

OPCODES = {"vector": tuple(sorted(VECTOR_OPCODES)), "scalar": tuple(sorted(SCALAR_OPCODES))}

LACKED = {Rule.ARITHMETIC, Rule.DESTINATION, Rule.ROUNDING, Rule.PORTS}
BREAKABLE = {"vector": ELEMENTWISE_RULES, "scalar": ELEMENTWISE_RULES - LACKED}
"""Rules that each engine's instructions can break; an ACTIVATE has one source and FP32 arithmetic, so fewer rules."""


def without_sums(program):
    """Return the program with all running sums restarted, because a reset may clear them."""
    words = [Elementwise.pack(Elementwise.unpack(record.word) | {"sum_continue": 0}) for record in program.records]
    records = [replace(record, word=word) for record, word in zip(program.records, words, strict=True)]
    instructions = [replace(instruction, sum_continue=False) for instruction in program.instructions]
    return replace(program, records=records, instructions=instructions)


def illegal(rng, config, engine, rule, program):
    legal = [record.word for record in program.records if record.engine == engine]
    word = illegal_word(rng, config, OPCODES[engine], rule, legal)
    assert word is not None, f"no instruction of the {engine} engine breaks {rule.name}"
    return EngineRecord(engine=engine, word=word)


def violation(record, config):
    return elementwise_violation(Elementwise.unpack(record.word), config, OPCODES[record.engine])


def interspersed(rng, config, program, each):
    among = []
    for engine, rules in BREAKABLE.items():
        among += [illegal(rng, config, engine, rule, program) for rule in sorted(rules) for _ in range(each)]
        among += [EngineRecord(engine=engine, word=random_word(rng)) for _ in range(each)]
    records = list(program.records)
    for record in among:
        assert violation(record, config) is not None
        records.insert(int(rng.integers(len(records) + 1)), record)
    refusals, since = {engine: [] for engine in ENGINES}, dict.fromkeys(ENGINES, 0)
    for record in records:
        if (broken := violation(record, config)) is not None:
            refusals[record.engine].append((int(broken[0]), since[record.engine]))
        since[record.engine] = since[record.engine] + 1 if broken is None else 0
    return records, refusals


def compare(outcome, program, instructions, config):
    expected = expected_memories(instructions, program.sbuf, program.psum, config)
    for name, memory in zip(("sbuf", "psum"), expected, strict=True):
        np.testing.assert_array_equal(outcome.memories[name], memory)


@pytest.mark.parametrize(("stall", "seed"), ((0, 1), (100, 2)))
def test_every_rule_is_enforced_and_nothing_else_is_touched(stall, seed):
    """Engines are reset after each error, so that one run has hundreds of them."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    program = without_sums(
        random_elementwise_program(rng, SHARED, 150, Choices(slow=False), bytes_per_partition=1 << 15)
    )
    records, refusals = interspersed(rng, SHARED, program, each=8)
    outcome = run_device(BOTH, work_of(replace(program, records=records), stall=stall, seed=seed, recover=True))
    for engine in ENGINES:
        print(f"{engine}: {len(refusals[engine])} instructions refused")
        assert outcome.parts[engine].errors == refusals[engine]
        assert {cause for cause, _ in refusals[engine]} == BREAKABLE[engine]
    compare(outcome, program, program.instructions, SHARED)
    assert sum(len(part.retired) for part in outcome.parts.values()) == len(program.instructions)


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_stops_at_the_first_error(engine):
    rng = np.random.default_rng(4)
    program = random_elementwise_program(rng, SHARED, 40, Choices(opcodes=OPCODES[engine]), bytes_per_partition=1 << 14)
    records = list(program.records)
    records.insert(17, illegal(rng, SHARED, engine, Rule.RANGE, program))
    outcome = run_device(BOTH, work_of(replace(program, records=records), stall=40, seed=1, events=True))
    assert outcome.faults == {engine: (Rule.RANGE, 17)}
    assert len(outcome.parts[engine].retired) == 17
    compare(outcome, program, program.instructions[:17], SHARED)


def refused_on_icarus(**shell):
    device = faulty(smallest("vector"), "vector_engine", **shell) if shell else smallest("vector")
    rng = np.random.default_rng(5)
    choices = Choices(opcodes=OPCODES["vector"], slow=False)
    program = random_elementwise_program(rng, SMALLEST, 6, choices, bytes_per_partition=IMAGE)
    records = list(program.records)
    for rule in (Rule.ALIGNMENT, Rule.PARTITIONS, Rule.FORMAT):
        records.insert(3, illegal(rng, SMALLEST, "vector", rule, program))
    outcome = run_device(device, work_of(replace(program, records=records), recover=True), sim="icarus")
    compare(outcome, program, program.instructions, SMALLEST)
    return outcome.parts["vector"].errors


REFUSALS = [(Rule.FORMAT, 3), (Rule.PARTITIONS, 0), (Rule.ALIGNMENT, 0)]


@pytest.mark.slow
def test_icarus_refuses_alike():
    assert refused_on_icarus() == REFUSALS


def test_a_wrong_cause_is_noticed():
    body = "wire [40:0] found; assign error = {found[40:9], found[8:1] + 8'd1, found[0]};"
    assert refused_on_icarus(ports={"error": "found"}, body=body) == [(cause + 1, number) for cause, number in REFUSALS]
