"""Published cycle formulas of instructions, by the fields that they depend on."""

from dataclasses import replace

import pytest

from neuroncore_rtl.frontends.nki.costs import published_by_line, published_cost
from neuroncore_rtl.kernels.program import Program, row_major
from neuroncore_rtl.kernels.program.instructions import activation, iota, memset
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import Access, AluOp, Elementwise, MultiplyMoving, Nop, Opcode, Storage


def elementwise(opcode, formats=(FP32, FP32, FP32), storage=Storage.SBUF, count=100, **fields):
    dst, a, b = (Access(format=fmt, address=1024 * n, steps=(1,)) for n, fmt in enumerate(formats))
    b = Access(format=formats[2], address=2048, steps=(1,), storage=storage)
    return Elementwise(opcode=opcode, partitions=4, shape=(count,), dst=dst, a=a, b=b, **fields)


HALVES = (BF16,) * 3


@pytest.mark.parametrize(
    "instruction, formula, cycles",
    [
        (elementwise(Opcode.TENSOR_COPY), "max(64, N)", 100),
        (elementwise(Opcode.TENSOR_COPY, count=10), "max(64, N)", 64),
        (elementwise(Opcode.TENSOR_TENSOR, op0=AluOp.ADD), "max(64, 2N)", 200),
        (elementwise(Opcode.TENSOR_TENSOR, op0=AluOp.ADD, storage=Storage.PSUM), "max(64, N)", 100),
        (elementwise(Opcode.TENSOR_TENSOR, HALVES, op0=AluOp.ADD), "max(64, N)", 100),
        (elementwise(Opcode.TENSOR_TENSOR, HALVES, op0=AluOp.MAX), "max(64, 2N)", 200),
        (elementwise(Opcode.SCALAR_TENSOR_TENSOR, op0=AluOp.SUBTRACT, op1=AluOp.MULTIPLY), "2N", 200),
        (elementwise(Opcode.SCALAR_TENSOR_TENSOR, HALVES, op0=AluOp.SUBTRACT, op1=AluOp.MULTIPLY), "N", 100),
        (elementwise(Opcode.SCALAR_TENSOR_TENSOR, HALVES, op0=AluOp.ADD, op1=AluOp.MULTIPLY), "2N", 200),
        (elementwise(Opcode.SCALAR_TENSOR_TENSOR, HALVES, count=99, op0=AluOp.SUBTRACT, op1=AluOp.MULTIPLY), "2N", 198),
        (elementwise(Opcode.TENSOR_REDUCE, op0=AluOp.MAX), "N", 100),
        (elementwise(Opcode.TENSOR_REDUCE, HALVES, op0=AluOp.MAX), "N / 2", 50),
        (elementwise(Opcode.MEMSET, HALVES, count=200, s0=0.0), "max(64, N / 2)", 100),
        (elementwise(Opcode.MEMSET, HALVES, count=200, s0=1.0), "max(64, N)", 200),
        (elementwise(Opcode.RECIPROCAL), "max(64, 8N)", 800),
        (elementwise(Opcode.ACTIVATE), "max(64, N)", 100),
        (elementwise(Opcode.ACTIVATE, sum_store=True), "max(64, N) + 64", 164),
        (elementwise(Opcode.IOTA), "150 + N", 250),
        (MultiplyMoving(format=BF16, k=4, m=128, n=32, address=0, stride=2, psum=0), "max(min(64, S), N)", 64),
        (MultiplyMoving(format=BF16, k=4, m=32, n=512, address=0, stride=2, psum=0), "max(min(64, S), N)", 512),
    ],
)
def test_the_published_formula_of_an_instruction(instruction, formula, cycles):
    cost = published_cost(instruction)
    assert (cost.formula, cost.cycles) == (formula, cycles)


def test_nothing_is_published_of_others():
    assert published_cost(Nop()) is None


def test_the_cycles_of_a_line_are_those_of_the_machines_clock():
    program = Program(PRESETS["tiny"])
    tile = program.space.sbuf("tile", FP32, (200,))
    for _ in range(2):
        program.append(memset(tile, 1.0))
    program.append(activation(tile, tile, "exp"))
    program.append(iota(tile.bitcast(INT32), row_major((200,))))
    machines = PRESETS["tiny"], replace(PRESETS["tiny"], vector_speed=40, scalar_speed=50, gpsimd_speed=25)
    for machine, expected in zip(machines, ([400, 200, 350], [1000, 400, 1400]), strict=True):
        costs = published_by_line(program.entries, machine)
        assert [cost.cycles for cost in costs.values()] == expected
