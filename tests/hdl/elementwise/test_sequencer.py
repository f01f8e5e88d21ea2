import pytest
from amaranth import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.checker import ElementwiseChecker
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseInstruction, ElementwiseOpcode
from neuroncore_rtl.hdl.elementwise.issue import ElementwiseIssue
from neuroncore_rtl.hdl.elementwise.sequencer import ElementwiseSequencer
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.elementwise import Elementwise
from tests.hdl.elementwise.instructions import CONFIGS, OPCODES, copy, legal_fields
from tests.hdl.elementwise.steps import assert_passed_on, numbers, steps_of
from tests.hdl.simulation import pulse, put, simulated, slow
from tests.hdl.streams import play

SEED = 2011

WIDE = Config(rows=32, columns=4)
"""A machine with the largest block to transpose."""


def is_reciprocal(instruction):
    return instruction.opcode == ElementwiseOpcode.RECIPROCAL


def interval(instruction):
    return Mux(instruction.opcode == ElementwiseOpcode.TENSOR_TENSOR_SCAN, 2, 1)


class Front(wiring.Component):
    i: In(stream.Signature(ElementwiseInstruction))
    o: Out(stream.Signature(ElementwiseIssue))
    busy: Out(1)

    def __init__(self, config):
        self.config = config
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.checker = checker = ElementwiseChecker(self.config, OPCODES, is_reciprocal, interval)
        m.submodules.sequencer = sequencer = ElementwiseSequencer()
        wiring.connect(m, wiring.flipped(self.i), checker.i)
        wiring.connect(m, checker.o, sequencer.i)
        wiring.connect(m, sequencer.o, wiring.flipped(self.o))
        m.d.comb += self.busy.eq(checker.busy | sequencer.busy)
        return m


def issues_of(config, instructions, stall=0.0):
    words = [Elementwise.pack(values) for values in instructions]
    count = sum(len(steps_of(values, config)) for values in instructions)
    dut = Front(config)
    played = play(dut, {"i": words}, {"o": count}, stall={"i": 0.0, "o": stall}, watch=[dut.busy, dut.o.valid])
    assert all(busy or not valid for busy, valid in played.watched) and played.watched[-1] == (0, 0)
    return [numbers(ElementwiseIssue.as_shape(), issue) for issue in played.payloads["o"]], played.cycles["o"]


def assert_column(read, place, column, what):
    assert read == (column is not None), what
    if column is not None:
        size = {1: 0, 2: 1, 4: 2}[column.size]
        got = tuple(place[name] for name in ("storage", "quadrant", "address", "size"))
        assert got == (column.storage, column.quadrant, column.address, size), what


def assert_steps(config, instructions, issues):
    expected = [(values, step) for values in instructions for step in steps_of(values, config)]
    assert len(issues) == len(expected) > 0
    is_slow = False
    for number, ((values, want), issue) in enumerate(zip(expected, issues, strict=True)):
        step = issue["step"]
        what = f"step {number}: {values}"
        assert_passed_on(values, want, step)
        assert_column(issue["reads_a"], issue["a"], want.a, f"a of {what}")
        assert_column(issue["reads_b"], issue["b"], want.b, f"b of {what}")
        assert_column(step["writes"], issue["write"]["place"], want.write, f"dst of {what}")
        assert issue["write"]["last"] == want.final, what
        assert issue["write"]["partitions"] == values["partitions"], what
        assert issue["interval"] == (2 if values["opcode"] == isa.Opcode.TENSOR_TENSOR_SCAN else 1), what
        first = number == 0 or expected[number - 1][0] is not values
        if first:
            after_slow, is_slow = is_slow, values["opcode"] == isa.Opcode.RECIPROCAL
        assert issue["drain"] == (first and (not values["overlap"] or is_slow or after_slow)), what


def in_all_dimensions(rng, config):
    while True:
        values = legal_fields(rng, config, {isa.Opcode.TENSOR_TENSOR}, elements=3)
        if all(values[f"count{d}"] > 1 for d in range(isa.DIMENSIONS)):
            return values


@pytest.mark.parametrize(("config", "blocks"), [*slow((WIDE, 2)), (CONFIGS["6x4"], 5)], ids=["32x4", "6x4"])
def test_steps_are_those_of_the_definition(config, blocks, rng):
    elements = dict.fromkeys(OPCODES, 5) | {isa.Opcode.TRANSPOSE: blocks}
    instructions = [
        legal_fields(rng, config, {opcode}, elements=most) for opcode, most in elements.items() for _ in range(3)
    ]
    instructions += [in_all_dimensions(rng, config) for _ in range(6)]
    rng.shuffle(instructions)
    issues, _ = issues_of(config, instructions, stall=0.4)
    assert_steps(config, instructions, issues)


@simulated(lambda: Front(WIDE))
async def test_an_instruction_drains_after_a_slow_one_but_not_after_a_reset(ctx, dut, reset):
    slow_one, other = (Elementwise.pack(copy(1, opcode)) for opcode in (isa.Opcode.RECIPROCAL, isa.Opcode.TENSOR_COPY))
    drains = []
    for word in (slow_one, other, slow_one, None, other):
        if word is None:
            await pulse(ctx, reset)
            continue
        await put(ctx, dut.i, word)
        (drain,) = await ctx.tick().sample(dut.o.payload.drain).until(dut.o.valid)
        drains.append(drain)
        await pulse(ctx, dut.o.ready)
    assert drains == [1, 1, 1, 0]


def test_steps_of_instructions_without_a_bubble():
    _, cycles = issues_of(WIDE, [copy(count) for count in (4, 7, 4, 5)])
    first = ElementwiseChecker.LATENCY + ElementwiseSequencer.LATENCY
    assert cycles == list(range(first, first + 20))
