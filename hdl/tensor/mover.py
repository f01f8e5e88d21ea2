"""The mover: turns a MultiplyMoving into moving columns, one a cycle."""

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


class _Column(data.Struct):
    """A column and the way to it. address: of its element, in bytes. first: of its instruction."""

    control: ColumnControl
    address: unsigned(ADDRESS_BITS)
    first: unsigned(1)


def _meets(write: PsumWrite, issued: list[tuple[Value, Value]]) -> Value:
    """Return whether a column adds to one of the words that were issued."""
    return Cat(was & (word == write.address) for word, was in issued).any() & write.accumulate


def _word_of(address: Value) -> Value:
    """Return the address of a whole word: the memory knows no others, and the edge picks the element."""
    return address & ~(MOVING_BITS // 8 - 1)


def _needs(column, read: Value) -> Value:
    """Return whether a column's word is another one than that which was read last.

    What was read for another instruction may have been overwritten since.
    """
    return column.first | (_word_of(column.address) != read)


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

    One column per cycle; with `config.port_latency` it is formed so many cycles before it asks.
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
        reads = Signal()  # its word was not the last one that was read

        # A word that is added to must have been written. The words still on their way are the last few issued.
        in_flight = Signal()
        issued = [(write.address, fire)]
        for cycle in range(1, Psum.spacing_of(self.config.add_latency)):
            word, was = Signal.like(write.address, name=f"word{cycle}"), Signal(name=f"issued{cycle}")
            m.d.sync += [word.eq(issued[-1][0]), was.eq(issued[-1][1])]
            issued.append((word, was))
        if not self.config.port_latency:
            m.d.comb += [in_flight.eq(_meets(write, issued[1:])), reads.eq(_needs(column, read_address))]
        else:
            # Compared a cycle before it matters, with those that will be on their way then. That this column goes is
            # known last of all.
            following, before = register.i.payload, issued[1:-1]
            last_read = Mux(held, word_address, read_address)
            with m.If(fire | ~held):
                m.d.sync += [
                    in_flight.eq(_meets(following.control.write, [(write.address, held), *before])),
                    reads.eq(_needs(following, last_read)),
                ]
            with m.Else():
                m.d.sync += in_flight.eq(_meets(write, before))

        m.d.comb += [
            self.wait_weights.eq(held & column.control.swap & ~self.weights_loaded),
            self.wait_psum.eq(held & in_flight & ~self.wait_weights),
            wanted.eq(held & ~self.wait_weights & ~in_flight),
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

    def _columns(self, m: Module):
        """Return the stream of the columns of all instructions."""
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
            # Zeros of an identity, and zero halves, contribute nothing: they must not make a NaN of an infinity.
            control.element.skip_zero.eq(instruction.half | instruction.transpose),
            control.rows.first.eq(instruction.row),
            control.rows.end.eq(instruction.row + instruction.k),
            control.swap.eq(self.i.payload.swap & column.first),
            control.identity.eq(instruction.transpose),
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
