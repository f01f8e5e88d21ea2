"""The mover: turns a MultiplyMoving into moving columns, one a cycle."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode, element_size
from neuroncore_rtl.hdl.memory.port import ReadPort
from neuroncore_rtl.hdl.memory.psum import PSUM_ADDRESS, Psum, PsumWrite
from neuroncore_rtl.hdl.span import Span
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, Element
from neuroncore_rtl.hdl.tensor.instruction import TensorInstruction
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import MATMUL_FORMATS

__all__ = ["ColumnControl", "Move", "Mover"]


class Move(data.Struct):
    """A MultiplyMoving on its way to the mover; `swap` says that the weights loaded before it become active."""

    instruction: TensorInstruction
    swap: unsigned(1)


class ColumnControl(data.Struct):
    """What accompanies a moving column: how to read it, rows, swap and start of its sums, and its place in PSUM.

    last: the instruction's last column.
    """

    element: Element
    rows: Span
    swap: unsigned(1)
    identity: unsigned(1)
    write: PsumWrite
    last: unsigned(1)


class Mover(wiring.Component):
    """Executes MultiplyMoving, back to back without a bubble.

    Adjacent elements of an instruction that lie in one word are read once.

    Arguments:
        config: the machine's parameters.

    Ports:
        i: instructions, each with its `swap`.
        memory: the moving read port.
        column_valid, column: a column whose words arrive `ReadPort.LATENCY` cycles later if they are `fresh`; else
            they are those of the column before.
        weights_loaded: the shadow weights are complete. swapped: they become active with this cycle's column.
        wait_weights, wait_operand, wait_psum: a column waits for the weights, for the memory, or because its PSUM
            word, which it adds to, is still being written.
        idle: no instruction is being executed or waits.

    One column per cycle.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(Move)),
                "memory": Out(ReadPort(config.rows, MOVING_BITS)),
                "column_valid": Out(1),
                "column": Out(ColumnControl),
                "fresh": Out(1),
                "weights_loaded": In(1),
                "swapped": Out(1),
                "wait_weights": Out(1),
                "wait_operand": Out(1),
                "wait_psum": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instruction = self.i.payload.instruction
        size = element_size(m, "size", instruction.dtype, MATMUL_FORMATS)
        index = Signal.like(instruction.n)
        offset = Signal.like(self.memory.address)
        address = Signal.like(self.memory.address)
        word = Signal(PSUM_ADDRESS)
        word_address, read_address = Signal.like(address), Signal.like(address)
        wanted, fire, last, swap = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            address.eq(instruction.address + offset),
            word.eq(instruction.psum + index),
            last.eq(index == instruction.n - 1),
            swap.eq(self.i.payload.swap & (index == 0)),
        ]

        # A word that is added to must have been written. The words still on their way are the last few issued.
        in_flight = Signal()
        busy_word, busy = word, fire
        for cycle in range(1, Psum.spacing_of(self.config.add_latency)):
            issued_word, issued = Signal.like(word, name=f"word{cycle}"), Signal(name=f"issued{cycle}")
            m.d.sync += [issued_word.eq(busy_word), issued.eq(busy)]
            with m.If(issued & (issued_word == word) & instruction.accumulate):
                m.d.comb += in_flight.eq(1)
            busy_word, busy = issued_word, issued

        m.d.comb += [
            self.wait_weights.eq(self.i.valid & swap & ~self.weights_loaded),
            self.wait_psum.eq(self.i.valid & in_flight & ~self.wait_weights),
            wanted.eq(self.i.valid & ~self.wait_weights & ~in_flight),
            # The memory knows whole words; the edge picks the element.
            word_address.eq(address & ~(MOVING_BITS // 8 - 1)),
            # What was read for another instruction may have been overwritten since.
            self.memory.valid.eq(wanted & ((index == 0) | (word_address != read_address))),
            self.memory.address.eq(word_address),
            self.wait_operand.eq(self.memory.valid & ~self.memory.ready),
            fire.eq(wanted & ~self.wait_operand),
            self.fresh.eq(self.memory.valid & self.memory.ready),
            self.swapped.eq(fire & swap),
            self.i.ready.eq(fire & last),
            self.idle.eq(~self.i.valid),
            self.column_valid.eq(fire),
            self.column.element.offset.eq(address),
            self.column.element.size.eq(size),
            self.column.element.dtype.eq(instruction.dtype),
            self.column.element.half.eq(instruction.half),
            # Zeros of an identity, and zero halves, contribute nothing: they must not make a NaN of an infinity.
            self.column.element.skip_zero.eq(instruction.half | instruction.transpose),
            self.column.rows.first.eq(instruction.row),
            self.column.rows.end.eq(instruction.row + instruction.k),
            self.column.swap.eq(swap),
            self.column.identity.eq(instruction.transpose),
            self.column.write.address.eq(word),
            self.column.write.accumulate.eq(instruction.accumulate),
            self.column.write.integer.eq(instruction.dtype == FormatCode.INT8),
            self.column.write.partitions.first.eq(instruction.column),
            self.column.write.partitions.end.eq(instruction.column + instruction.m),
            self.column.last.eq(last),
        ]
        with m.If(fire):
            m.d.sync += [
                read_address.eq(word_address),
                index.eq(Mux(last, 0, index + 1)),
                offset.eq(Mux(last, 0, offset + instruction.stride)),
            ]
        return m
