# amaranth: UnusedElaboratable=no

"""What an engine must refuse: it names the rule and the instruction, touches no memory, and comes to rest."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.spec.isa import SCALAR_OPCODES, VECTOR_OPCODES, Rule
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_RULES, Elementwise, elementwise_violation
from neuroncore_rtl.tb.check.execution import expected_memories, work_of
from neuroncore_rtl.tb.harness.elementwise import ENGINES, EngineRecord
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.sim.simulation import SimulationFailed
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_program
from neuroncore_rtl.tb.stimulus.illegal import illegal_word, random_word
from tests.hdl.tensor.engines import faulty
from tests.tb.benches.instructions import BOTH, IMAGE, SHARED, SMALLEST, smallest

OPCODES = {"vector": VECTOR_OPCODES, "scalar": SCALAR_OPCODES}

BREAKABLE = {
    "vector": ELEMENTWISE_RULES,
    "scalar": ELEMENTWISE_RULES - {Rule.ARITHMETIC, Rule.DESTINATION, Rule.ROUNDING, Rule.PORTS},
}
"""The rules that an engine's instructions can break: an ACTIVATE has one source, and its arithmetic is FP32."""


def without_sums(program):
    """Return the program with all running sums starting anew, as a reset may clear them."""
    records = []
    for record in program.records:
        values = Elementwise.unpack(record.word) | {"sum_continue": 0}
        records.append(replace(record, word=Elementwise.pack(values)))
    instructions = [replace(instruction, sum_continue=False) for instruction in program.instructions]
    return replace(program, records=records, instructions=instructions)


def interspersed(rng, config, program, each):
    """Return the records with illegal ones among them, and what each engine must say of those, in order.

    Arguments:
        rng: decides everything.
        config: the machine's parameters.
        program: legal instructions.
        each: how many illegal instructions break a rule of an engine.
    """
    illegal = []
    for engine, opcodes in OPCODES.items():
        legal = [record.word for record in program.records if record.engine == engine]
        for rule in sorted(BREAKABLE[engine]):
            words = [illegal_word(rng, config, opcodes, rule, legal) for _ in range(each)]
            assert None not in words, f"no instruction of the {engine} engine breaks {rule.name}"
            illegal += [EngineRecord(engine=engine, word=word) for word in words]
        for _ in range(each):
            word = random_word(rng)
            assert elementwise_violation(Elementwise.unpack(word), config, opcodes) is not None
            illegal.append(EngineRecord(engine=engine, word=word))
    records = list(program.records)
    for record in illegal:
        records.insert(int(rng.integers(len(records) + 1)), record)
    refusals, since = {engine: [] for engine in ENGINES}, dict.fromkeys(ENGINES, 0)
    for record in records:
        broken = elementwise_violation(Elementwise.unpack(record.word), config, OPCODES[record.engine])
        if broken is None:
            since[record.engine] += 1
        else:
            refusals[record.engine].append((int(broken[0]), since[record.engine]))
            since[record.engine] = 0
    return records, refusals


@pytest.mark.parametrize(("stall", "seed"), ((0, 1), (100, 2)))
def test_every_rule_is_enforced_and_nothing_else_is_touched(stall, seed):
    """Engines are reset after each error, so that one run meets hundreds; what is legal between them is executed."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    program = without_sums(random_program(rng, SHARED, 150, Choices(slow=False), bytes_per_partition=1 << 15))
    records, refusals = interspersed(rng, SHARED, program, each=8)
    outcome = run(BOTH, work_of(replace(program, records=records), stall=stall, seed=seed, recover=True))
    for engine in ENGINES:
        print(f"{engine}: {len(refusals[engine])} instructions refused")
        assert outcome.parts[engine].errors == refusals[engine]
        assert {cause for cause, _ in refusals[engine]} == BREAKABLE[engine]
    sbuf, psum = expected_memories(program.instructions, program.sbuf, program.psum, SHARED)
    np.testing.assert_array_equal(outcome.memories["sbuf"], sbuf)
    np.testing.assert_array_equal(outcome.memories["psum"], psum)
    assert sum(len(part.retired) for part in outcome.parts.values()) == len(program.instructions)


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_stops_at_the_first_error(engine):
    """What comes behind it on the same engine stays undone, what came before is finished."""
    rng = np.random.default_rng(4)
    choices = Choices(opcodes=tuple(sorted(OPCODES[engine])))
    program = random_program(rng, SHARED, 40, choices, bytes_per_partition=1 << 14)
    records = list(program.records)
    word = illegal_word(rng, SHARED, OPCODES[engine], Rule.RANGE, [record.word for record in records])
    records.insert(17, EngineRecord(engine=engine, word=word))
    outcome = run(BOTH, work_of(replace(program, records=records), stall=40, seed=1, events=True))
    assert outcome.faults == {engine: (Rule.RANGE, 17)}
    assert len(outcome.parts[engine].retired) == 17
    sbuf, psum = expected_memories(program.instructions[:17], program.sbuf, program.psum, SHARED)
    np.testing.assert_array_equal(outcome.memories["sbuf"], sbuf)
    np.testing.assert_array_equal(outcome.memories["psum"], psum)


def _stopped(device):
    rng = np.random.default_rng(5)
    choices = Choices(opcodes=tuple(sorted(VECTOR_OPCODES)), slow=False)
    program = random_program(rng, SMALLEST, 6, choices, bytes_per_partition=IMAGE)
    records = list(program.records)
    for rule in (Rule.ALIGNMENT, Rule.PARTITIONS, Rule.FORMAT):
        word = illegal_word(rng, SMALLEST, VECTOR_OPCODES, rule, [record.word for record in program.records])
        records.insert(3, EngineRecord(engine="vector", word=word))
    outcome = run(device, work_of(replace(program, records=records), recover=True), sim="icarus")
    expected = expected_memories(program.instructions, program.sbuf, program.psum, SMALLEST)
    same = all((got == wanted).all() for got, wanted in zip(outcome.memories.values(), expected, strict=True))
    return same, outcome.parts["vector"].errors


REFUSALS = [(Rule.FORMAT, 3), (Rule.PARTITIONS, 0), (Rule.ALIGNMENT, 0)]


def test_icarus_refuses_alike():
    assert _stopped(smallest("vector")) == (True, REFUSALS)


def test_wrong_cause_and_missing_error_are_noticed():
    """Else nothing above would prove that the error port is looked at."""
    sound = smallest("vector")
    body = "wire [40:0] found; assign error = {found[40:9], found[8:1] + 8'd1, found[0]};"
    shell = {"ports": {"error": "found"}, "body": body}
    assert _stopped(faulty(sound, "vector_engine", **shell))[1] != REFUSALS
    shell = {"ports": {"error": ""}, "body": "assign error = 0;"}
    with pytest.raises(SimulationFailed, match="did not finish"):
        _stopped(faulty(sound, "vector_engine", **shell))
