"""Integer ALU of the controller: RV32I's register operations and branch comparisons."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.instruction import AluOp

__all__ = ["ControllerAlu"]


class ControllerAlu(wiring.Component):
    """Integer ALU, combinational; one subtractor serves all comparisons.

    Ports:
        op: operation.
        a, b: operands; the shift distance is b's lowest 5 bits.
        result: op(a, b), modulo 2 ** 32.
        condition: funct3 of a branch: bits 2 and 1 select equal, less, or less unsigned; bit 0 inverts.
        holds: the condition is true for a and b, for any `op`.
    """

    op: In(AluOp)
    a: In(32)
    b: In(32)
    result: Out(32)
    condition: In(3)
    holds: Out(1)

    def elaborate(self, platform):
        m = Module()
        difference = Signal(33)
        less, less_unsigned = Signal(), Signal()
        m.d.comb += [
            difference.eq(self.a - self.b),
            less_unsigned.eq(difference[32]),
            less.eq(Mux(self.a[31] ^ self.b[31], self.a[31], difference[32])),
        ]
        for code, comparison in ((0b00, self.a == self.b), (0b10, less), (0b11, less_unsigned)):
            with m.If(self.condition[1:] == code):
                m.d.comb += self.holds.eq(comparison ^ self.condition[0])
        distance = self.b[:5]
        fill = self.a[31] & (self.op == AluOp.SRA)
        with m.Switch(self.op):
            for operation, value in {
                AluOp.SUB: difference[:32],
                AluOp.SLL: (self.a << distance)[:32],
                AluOp.SLT: less,
                AluOp.SLTU: less_unsigned,
                AluOp.XOR: self.a ^ self.b,
                AluOp.OR: self.a | self.b,
                AluOp.AND: self.a & self.b,
            }.items():
                with m.Case(operation):
                    m.d.comb += self.result.eq(value)
            with m.Case(AluOp.SRL, AluOp.SRA):
                m.d.comb += self.result.eq((Cat(self.a, fill).as_signed() >> distance)[:32])
            with m.Default():
                m.d.comb += self.result.eq(self.a + self.b)
        return m
