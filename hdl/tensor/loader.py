"""Loader: executes LoadStationary as load steps of `LOAD_COLUMNS` columns per cycle."""

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import element_size
from neuroncore_rtl.hdl.memory.port import ReadPort
from neuroncore_rtl.hdl.primitives.span import Span
from neuroncore_rtl.hdl.tensor.array import tile_count
from neuroncore_rtl.hdl.tensor.edge import STATIONARY_BITS, Element
from neuroncore_rtl.hdl.tensor.instruction import TensorInstruction
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import MATMUL_FORMATS

__all__ = ["LoadStepControl", "StationaryLoader"]


class LoadStepControl(data.StructLayout):
    """Control of a load step: position and format of its words, the rows of the operand, and the destination tile."""

    def __init__(self, config: Config):
        tiles = tile_count(config.columns)
        super().__init__({"element": Element, "rows": Span, "distance": unsigned(max(1, (tiles - 1).bit_length()))})


class StationaryLoader(wiring.Component):
    """Executes one LoadStationary at a time, its steps in the order of the tiles.

    Throughput: one step per cycle, or per `config.load_interval`.

    Ports:
        i: LoadStationary instructions.
        memory: read port for the stationary operand.
        step_valid, step: a step; its words arrive `ReadPort.LATENCY` cycles later.
        start_allowed: the shadow weights, which the array does not use yet, may be overwritten.
        done: the last step of an instruction is issued in this cycle.
        waiting: an instruction stalls until `start_allowed`.
        stalled: a step stalls on the memory.
        idle: no instruction is executing or pending.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(TensorInstruction)),
                "memory": Out(ReadPort(config.rows, STATIONARY_BITS, config.port_latency)),
                "step_valid": Out(1),
                "step": Out(LoadStepControl(config)),
                "start_allowed": In(1),
                "done": Out(1),
                "waiting": Out(1),
                "stalled": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instruction = self.i.payload
        size = element_size(m, "size", instruction.dtype, MATMUL_FORMATS)
        index = Signal.like(self.step.distance)
        address = Signal.like(self.memory.address)
        running, fire, last = Signal(), Signal(), Signal()
        tiles = (instruction.m + (LOAD_COLUMNS - 1)) >> LOAD_COLUMNS.bit_length() - 1
        may_go = running | self.start_allowed
        if self.config.load_interval > 1:
            may_go &= ~self._early(m, fire)
        m.d.comb += [
            address.eq(instruction.address + ((index * LOAD_COLUMNS) << size)),
            self.memory.valid.eq(self.i.valid & may_go),
            # The memory delivers whole words; the edge selects the elements.
            self.memory.address.eq(address & ~(self.config.load_bytes - 1)),
            fire.eq(self.memory.valid & self.memory.ready),
            last.eq(index == tiles - 1),
            self.step_valid.eq(fire),
            self.step.distance.eq((instruction.column >> LOAD_COLUMNS.bit_length() - 1) + index),
            self.step.rows.first.eq(instruction.row),
            self.step.rows.end.eq(instruction.row + instruction.k),
            self.step.element.offset.eq(address),
            self.step.element.size.eq(size),
            self.step.element.dtype.eq(instruction.dtype),
            self.step.element.half.eq(instruction.half),
            # A zero half must be absent: multiplied by an infinity it would make NaN.
            self.step.element.skip_zero.eq(instruction.half),
            self.i.ready.eq(fire & last),
            self.done.eq(fire & last),
            self.waiting.eq(self.i.valid & ~running & ~self.start_allowed),
            self.stalled.eq(self.memory.valid & ~self.memory.ready),
            self.idle.eq(~self.i.valid),
        ]
        with m.If(fire):
            m.d.sync += [running.eq(~last), index.eq(Mux(last, 0, index + 1))]
        return m

    def _early(self, m: Module, fire: Signal) -> Value:
        """Return whether a step would begin within `load_interval` of the previous one."""
        rest = Signal(range(self.config.load_interval))
        with m.If(fire):
            m.d.sync += rest.eq(self.config.load_interval - 1)
        with m.Elif(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        return rest != 0
