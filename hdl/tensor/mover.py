"""Mover: executes MultiplyMoving as moving columns, one per cycle."""

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode, element_size
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, ReadPort
from neuroncore_rtl.hdl.memory.psum import Psum, PsumWrite
from neuroncore_rtl.hdl.primitives.fifo import StreamRegister
from neuroncore_rtl.hdl.primitives.span import Span
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, Element
from neuroncore_rtl.hdl.tensor.instruction import TensorInstruction
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import MATMUL_FORMATS

__all__ = ["ColumnControl", "Mover", "MoverStep"]


class MoverStep(data.Struct):
    """MultiplyMoving instruction for the mover.

    If `swap`, the instruction first activates the weights of the preceding LoadStationary.
    """

    instruction: TensorInstruction
    swap: unsigned(1)


class ColumnControl(data.Struct):
    """Control of a moving column: how to read it, its rows, swap, and its PSUM word.

    `last` marks the instruction's last column.
    """

    element: Element
    rows: Span
    swap: unsigned(1)
    write: PsumWrite
    last: unsigned(1)


class _Column(data.Struct):
    """A column to issue."""

    control: ColumnControl
    address: unsigned(ADDRESS_BITS)
    first: unsigned(1)


def _meets(write: PsumWrite, issued: list[tuple[Value, Value]]) -> Value:
    return Cat(was & (word == write.address) for word, was in issued).any() & write.accumulate


def _word_of(address: Value) -> Value:
    return address & ~(MOVING_BITS // 8 - 1)


def _needs(column, read: Value) -> Value:
    """Return whether a column needs another word than the last one read.

    An instruction's first column always does: the word may have been overwritten since another instruction read it.
    """
    return column.first | (_word_of(column.address) != read)


class Mover(wiring.Component):
    """Executes MultiplyMoving instructions back to back, one column per cycle.

    Adjacent elements of an instruction in one word are read once. With `config.port_latency` a column is formed one
    cycle before its request.

    Ports:
        i: MultiplyMoving instructions, as `MoverStep`.
        memory: read port for the moving operand.
        column_valid, column: a column is issued in this cycle, and its control.
        fresh: the column's words arrive `ReadPort.LATENCY` cycles later; else it uses the previous column's words.
        weights_loaded: the shadow weights, which a LoadStationary writes, are complete.
        swapped: the shadow weights become active with this column.
        wait_weights, wait_operand: a column stalls on the weights or their swap, on the memory.
        wait_psum: a column stalls on the write of its PSUM word.
        idle: no instruction is executing or pending.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(MoverStep)),
                "memory": Out(ReadPort(config.rows, MOVING_BITS, config.port_latency)),
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
        wanted, fire = Signal(), Signal()
        columns = self._columns(m)
        if self.config.port_latency:
            m.submodules.next_column = register = StreamRegister(_Column)
            wiring.connect(m, columns, register.i)
            columns = register.o
        m.d.comb += columns.ready.eq(fire)
        held, column = columns.valid, columns.payload
        write = column.control.write
        word_address, read_address = Signal.like(column.address), Signal.like(column.address)
        reads = Signal()  # the column needs a read: its word is not the last one read

        # A column stalls until the PSUM word that it accumulates to is written. The words in flight are the last few
        # issued.
        in_flight = Signal()
        issued = [(write.address, fire)]
        for cycle in range(1, Psum.spacing_of(self.config.add_latency)):
            word, was = Signal.like(write.address, name=f"word{cycle}"), Signal(name=f"issued{cycle}")
            m.d.sync += [word.eq(issued[-1][0]), was.eq(issued[-1][1])]
            issued.append((word, was))
        if not self.config.port_latency:
            m.d.comb += [in_flight.eq(_meets(write, issued[1:])), reads.eq(_needs(column, read_address))]
        else:
            # The next column is compared one cycle early, with the words that will be in flight then. The comparison
            # does not depend on the issue of the present column, which is the latest signal of all.
            following, before = register.i.payload, issued[1:-1]
            last_read = Mux(held, word_address, read_address)
            with m.If(fire | ~held):
                m.d.sync += [
                    in_flight.eq(_meets(following.control.write, [(write.address, held), *before])),
                    reads.eq(_needs(following, last_read)),
                ]
            with m.Else():
                m.d.sync += in_flight.eq(_meets(write, before))

        may_go = held & ~self.wait_weights & ~in_flight
        if self.config.least_interval:
            may_go &= ~self._early(m, column, fire)
        weights_ready = self.weights_loaded
        if self.config.swap_cycles:
            weights_ready &= ~self._swapping(m, fire)
        m.d.comb += [
            self.wait_weights.eq(held & column.control.swap & ~weights_ready),
            self.wait_psum.eq(held & in_flight & ~self.wait_weights),
            wanted.eq(may_go),
            word_address.eq(_word_of(column.address)),
            self.memory.valid.eq(wanted & reads),
            self.memory.address.eq(word_address),
            self.wait_operand.eq(self.memory.valid & ~self.memory.ready),
            fire.eq(wanted & ~self.wait_operand),
            self.fresh.eq(self.memory.valid & self.memory.ready),
            self.swapped.eq(fire & column.control.swap),
            self.idle.eq(~self.i.valid & ~held),
            self.column_valid.eq(fire),
            self.column.eq(column.control),
        ]
        with m.If(fire):
            m.d.sync += read_address.eq(word_address)
        return m

    def _early(self, m: Module, column, fire: Signal) -> Value:
        """Return whether an instruction would begin within `least_interval` of the previous one.

        An instruction with fewer stationary columns has a shorter minimum: one cycle per stationary column.
        """
        gap = Signal(range(self.config.least_interval + 1))
        span = column.control.write.partitions
        width = Signal.like(span.end)
        m.d.comb += width.eq(span.end - span.first)
        with m.If(fire & column.first):
            m.d.sync += gap.eq(Mux(width > self.config.least_interval, self.config.least_interval, width) - 1)
        with m.Elif(gap != 0):
            m.d.sync += gap.eq(gap - 1)
        return column.first & (gap != 0)

    def _swapping(self, m: Module, fire: Signal) -> Value:
        """Return whether fewer than `swap_cycles` cycles have passed since the last column."""
        rest = Signal(range(self.config.swap_cycles + 1))
        with m.If(fire):
            m.d.sync += rest.eq(self.config.swap_cycles)
        with m.Elif(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        return rest != 0

    def _columns(self, m: Module):
        columns = stream.Signature(_Column).create(path=("columns",))
        instruction, column, control = self.i.payload.instruction, columns.payload, columns.payload.control
        index = Signal.like(instruction.n)
        offset = Signal.like(self.memory.address)
        last = Signal()
        m.d.comb += [
            columns.valid.eq(self.i.valid),
            self.i.ready.eq(columns.ready & last),
            last.eq(index == instruction.n - 1),
            column.address.eq(instruction.address + offset),
            column.first.eq(index == 0),
            control.element.offset.eq(column.address),
            control.element.size.eq(element_size(m, "size", instruction.dtype, MATMUL_FORMATS)),
            control.element.dtype.eq(instruction.dtype),
            control.element.half.eq(instruction.half),
            # A zero in an identity, or a zero half, must be absent: multiplied by an infinity it would make NaN.
            control.element.skip_zero.eq(instruction.half | instruction.transpose),
            control.rows.first.eq(instruction.row),
            control.rows.end.eq(instruction.row + instruction.k),
            control.swap.eq(self.i.payload.swap & column.first),
            control.write.address.eq(instruction.psum + index),
            control.write.accumulate.eq(instruction.accumulate),
            control.write.integer.eq(instruction.dtype == FormatCode.INT8),
            control.write.partitions.first.eq(instruction.column),
            control.write.partitions.end.eq(instruction.column + instruction.m),
            control.last.eq(last),
        ]
        with m.If(columns.valid & columns.ready):
            m.d.sync += [
                index.eq(Mux(last, 0, index + 1)),
                offset.eq(Mux(last, 0, offset + instruction.stride)),
            ]
        return columns
