"""Job: an element-wise instruction with derived controls, computed once before its first step."""

from collections.abc import Callable

from amaranth import Module, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import element_size
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseInstruction, ElementwiseOpcode, PointerLayout
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, transpose_block, uses

__all__ = ["INTERVAL_BITS", "ElementwiseJobLayout", "derive_job", "opcode_in", "pointer", "uses_operand"]

INTERVAL_BITS = 8
"""Width of a number of cycles between two steps."""


class ElementwiseJobLayout(data.Struct):
    """Legal instruction with derived controls.

    Fields:
        integer: the instruction computes with integers.
        uint32: the integers are UINT32, else INT32.
        size_*: log2 of the element size in bytes, for each access and pointer.
        loads0, loads1: scalar 0, scalar 1 is read from SBUF before the elements.
        values: 8 values of the access b are read before the elements.
        reads_a, reads_b: each ELEMENT step reads the access a, the access b.
        group: number of innermost dimensions in a group; see `ElementwiseStep.first`.
        writes: ELEMENT steps write the access dst.
        reduces: only the last ELEMENT step of each group writes a result.
        delayed: the addresses of the access dst are one group behind the addresses of the operands.
        results: number of RESULT steps.
        at_b: RESULT steps write to the addresses of the access b, else of dst.
        slow: while the instruction is in the lanes, no other instruction may be there.
        interval: smallest number of cycles from one step to the next.
    """

    instruction: ElementwiseInstruction
    integer: unsigned(1)
    uint32: unsigned(1)
    size_dst: unsigned(2)
    size_a: unsigned(2)
    size_b: unsigned(2)
    size_s0: unsigned(2)
    size_s1: unsigned(2)
    loads0: unsigned(1)
    loads1: unsigned(1)
    values: unsigned(1)
    reads_a: unsigned(1)
    reads_b: unsigned(1)
    group: unsigned(3)
    writes: unsigned(1)
    reduces: unsigned(1)
    delayed: unsigned(1)
    results: unsigned(6)
    at_b: unsigned(1)
    slow: unsigned(1)
    interval: unsigned(INTERVAL_BITS)


_PRELOADED = (isa.Opcode.FIND_INDEX8, isa.Opcode.MATCH_REPLACE8)
"""Opcodes that read a few values of b, not a tensor of the instruction's shape."""


def opcode_in(instruction, opcodes) -> Value:
    """Return whether an instruction's opcode is one of `opcodes`."""
    return instruction.opcode.as_value().matches(*(int(opcode) for opcode in sorted(opcodes)))


def uses_operand(instruction, name: str) -> Value:
    """Return whether an instruction uses an operand: a, b, result, s0, s1, op0 or op1."""
    plain = {o for o in isa.Opcode if name in uses({"opcode": o, "sum_store": 0})}
    storing = {o for o in isa.Opcode if name in uses({"opcode": o, "sum_store": 1})}
    return opcode_in(instruction, plain) | (instruction.sum_store & opcode_in(instruction, storing - plain))


def pointer(instruction, number: int):
    """Return scalar `number` (0 or 1) of an instruction as a pointer."""
    return data.View(PointerLayout, instruction[f"scalar{number}"][: PointerLayout.size])


def derive_job(m: Module, config: Config, instruction, slow: Callable, interval: Callable) -> Signal:
    """Return a combinational signal with the job of a legal instruction.

    The checker sets the field `arithmetic` (FP32 or integers) itself.

    Arguments:
        m: the module.
        config: the machine's parameters.
        instruction: view of the instruction.
        slow: function from an instruction's view to the job's `slow`.
        interval: function from an instruction's view to the job's `interval`.
    """
    job = Signal(ElementwiseJobLayout)
    m.d.comb += [
        job.instruction.eq(instruction),
        job.size_dst.eq(element_size(m, "size_dst", instruction.dst_dtype)),
        job.size_a.eq(element_size(m, "size_a", instruction.a_dtype)),
        job.size_b.eq(element_size(m, "size_b", instruction.b_dtype)),
        job.size_s0.eq(element_size(m, "size_s0", pointer(instruction, 0).dtype)),
        job.size_s1.eq(element_size(m, "size_s1", pointer(instruction, 1).dtype)),
        job.loads0.eq(instruction.pointer0 & uses_operand(instruction, "s0")),
        job.loads1.eq(instruction.pointer1 & uses_operand(instruction, "s1")),
        job.values.eq(opcode_in(instruction, _PRELOADED)),
        job.reads_a.eq(uses_operand(instruction, "a")),
        job.reads_b.eq(uses_operand(instruction, "b") & ~job.values),
        job.group.eq(DIMENSIONS),
        job.writes.eq(~opcode_in(instruction, OUTPUTS)),
        job.at_b.eq(uses_operand(instruction, "result")),
        job.results.eq(job.at_b),
        job.slow.eq(slow(instruction)),
        job.interval.eq(interval(instruction)),
    ]
    with m.Switch(instruction.opcode):
        with m.Case(ElementwiseOpcode.TENSOR_REDUCE):
            m.d.comb += [job.group.eq(instruction.axes), job.reduces.eq(1)]
        with m.Case(ElementwiseOpcode.TRANSPOSE):
            m.d.comb += [job.group.eq(1), job.delayed.eq(1), job.results.eq(transpose_block(config))]
        for opcode, count in OUTPUTS.items():
            with m.Case(ElementwiseOpcode(opcode.value)):
                m.d.comb += job.results.eq(count)
        with m.Default():
            pass
    return job
