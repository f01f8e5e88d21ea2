"""Tensor engine: instructions in, results in PSUM.

    instructions -> checker -> dispatch -> loader -> [stationary memory] -> edge -> skew -> array -> column skew -> PSUM
                                        -> mover  -> [moving memory]     -> edge -> skew ->

The array never stalls: a column that cannot be issued becomes a bubble. All control is pipelined with the data, so
every processing element sees all events in the order of issue.
"""

from functools import partial

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.memory.port import PsumWritePort, ReadPort
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.primitives.counting import count
from neuroncore_rtl.hdl.primitives.delay_line import DelayLine
from neuroncore_rtl.hdl.primitives.engine_error import EngineError
from neuroncore_rtl.hdl.primitives.fifo import BypassFifo, Fifo
from neuroncore_rtl.hdl.primitives.span import members
from neuroncore_rtl.hdl.tensor.array import tile_count
from neuroncore_rtl.hdl.tensor.checker import TensorChecker
from neuroncore_rtl.hdl.tensor.datapath import Datapath
from neuroncore_rtl.hdl.tensor.edge import MOVING_BITS, STATIONARY_BITS
from neuroncore_rtl.hdl.tensor.instruction import TensorInstruction, TensorOpcode
from neuroncore_rtl.hdl.tensor.loader import StationaryLoader
from neuroncore_rtl.hdl.tensor.mover import Mover, MoverStep
from neuroncore_rtl.hdl.verilog.hierarchy import lanes
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["TensorCounters", "TensorEngine"]


class TensorCounters(data.Struct):
    """Counters since reset.

    Fields:
        busy: cycles in which an instruction is pending or in flight.
        columns: number of moving columns issued.
        macs: number of multiply-accumulates that contribute to results: rows of the operand times written columns.
        loads: number of load steps.
        wait_weights: cycles in which the next column stalled on its weights.
        wait_operand: cycles in which the next column stalled on the memory.
        wait_psum: cycles in which the next column stalled on an unfinished write of the PSUM word to accumulate to.
    """

    busy: unsigned(COUNTER_BITS)
    columns: unsigned(COUNTER_BITS)
    macs: unsigned(COUNTER_BITS)
    loads: unsigned(COUNTER_BITS)
    wait_weights: unsigned(COUNTER_BITS)
    wait_operand: unsigned(COUNTER_BITS)
    wait_psum: unsigned(COUNTER_BITS)


class Load(data.Struct):
    """LoadStationary instruction for the loader.

    `replaces` tells that no multiplication uses the weights of the previous LoadStationary.
    """

    instruction: TensorInstruction
    replaces: unsigned(1)


class TensorEngine(wiring.Component):
    """Engine that executes the tensor instructions of `spec.isa` in order; loads overlap earlier multiplications.

    Ports:
        instructions: a stream of `TensorInstruction`.
        stationary, moving: read ports of the operand memory.
        psum, psum_shared: read ports of PSUM, never at the same bank in a cycle; see `hdl.memory.psum.Psum`.
        psum_write: write port of PSUM.
        psum_reading: port `reading` of `Psum`.
        retired: pulse for each MultiplyMoving, in order, when the last word of the result can be read and the operand
            can be overwritten.
        loaded: pulse for each LoadStationary, in order, when its operand can be overwritten.
        error: see `EngineError`; no more instructions are accepted, earlier ones complete.
        busy: an instruction is pending or in flight.
        active: the state of the engine may change at the end of this cycle; otherwise the clock may stop.
        counters: `TensorCounters`.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "instructions": In(stream.Signature(TensorInstruction)),
                "stationary": Out(ReadPort(config.rows, STATIONARY_BITS, config.port_latency)),
                "moving": Out(ReadPort(config.rows, MOVING_BITS, config.port_latency)),
                "psum": In(ReadPort(config.columns, 32)),
                "psum_shared": In(ReadPort(config.columns, 32)),
                "psum_write": In(PsumWritePort(config.columns)),
                "psum_reading": Out(config.psum_banks),
                "retired": Out(1),
                "loaded": Out(1),
                "error": Out(EngineError),
                "busy": Out(1),
                "active": Out(1),
                "counters": Out(TensorCounters),
            }
        )

    @staticmethod
    def input_latency(config: Config) -> int:
        """Return the cycles from the issue of a column to its operand at row 0."""
        return ReadPort.LATENCY[config.port_latency] + config.edge_latency

    @staticmethod
    def sum_latency(config: Config) -> int:
        """Return the cycles from the issue of a column until all its sums are at PSUM."""
        return TensorEngine.input_latency(config) + config.rows * config.mac_latency + tile_count(config.columns) - 1

    @staticmethod
    def latency(config: Config) -> int:
        """Return the cycles from the issue of a column until its PSUM words can be read."""
        return TensorEngine.sum_latency(config) - 1 + Psum.spacing_of(config.add_latency)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.checker = checker = TensorChecker(config)
        m.submodules.loader = loader = StationaryLoader(config)
        m.submodules.mover = mover = Mover(config)
        size = f"{config.rows}x{config.columns}_latency{config.mac_latency}_bits{config.significand_bits}"
        build = partial(Datapath, config)
        datapath = lanes(m, "datapath", f"datapath_{size}", build, platform, of=("tile_", "edge_row"))
        wiring.connect(m, wiring.flipped(self.instructions), checker.i)
        wiring.connect(m, loader.memory, wiring.flipped(self.stationary))
        wiring.connect(m, mover.memory, wiring.flipped(self.moving))
        m.d.comb += self.error.eq(checker.error)
        m.d.sync += self.loaded.eq(loader.done)
        self._dispatch(m, checker.o, loader, mover)
        self._edge(m, loader, mover, datapath)
        self._psum(m, mover, datapath, platform)
        self._count(m, checker, loader, mover)
        return m

    def _dispatch(self, m, instructions, loader, mover):
        """Distribute the instructions to a load queue and a move queue.

        Each has two entries, so a LoadStationary can overtake two MultiplyMoving.
        """
        queue = Fifo if self.config.port_latency else BypassFifo
        m.submodules.load_queue = load_queue = queue(Load, depth=timing.TENSOR_QUEUE)
        m.submodules.move_queue = move_queue = queue(MoverStep, depth=timing.TENSOR_QUEUE)
        instruction = instructions.payload
        is_load = Signal()
        loaded = Signal()  # the shadow weights are complete
        pending = Signal()  # no MultiplyMoving has activated the last loaded weights yet
        replacing = Signal()  # the shadow weights are complete, but a load that replaces them is pending
        m.d.comb += [
            is_load.eq(instruction.opcode == TensorOpcode.LOAD_STATIONARY),
            load_queue.i.payload.instruction.eq(instruction),
            load_queue.i.payload.replaces.eq(pending),
            load_queue.i.valid.eq(instructions.valid & is_load),
            move_queue.i.payload.instruction.eq(instruction),
            move_queue.i.payload.swap.eq(pending),
            move_queue.i.valid.eq(instructions.valid & ~is_load),
            instructions.ready.eq(Mux(is_load, load_queue.i.ready, move_queue.i.ready)),
            replacing.eq(load_queue.o.valid & load_queue.o.payload.replaces),
            loader.i.payload.eq(load_queue.o.payload.instruction),
            loader.i.valid.eq(load_queue.o.valid),
            load_queue.o.ready.eq(loader.i.ready),
            loader.start_allowed.eq(~loaded | replacing),
            mover.weights_loaded.eq(loaded & ~replacing),
        ]
        wiring.connect(m, move_queue.o, mover.i)
        with m.If(instructions.valid & instructions.ready):
            m.d.sync += pending.eq(is_load)
        with m.If(loader.done):
            m.d.sync += loaded.eq(1)
        with m.Elif(mover.swapped):
            m.d.sync += loaded.eq(0)

    def _edge(self, m, loader, mover, datapath):
        config = self.config

        def registered(name, value):
            register = Signal.like(value, name=name, reset_less=True)
            m.d.sync += register.eq(value)
            return register

        def at_row0(name, value, cycles):
            for cycle in range(1, cycles):
                value = registered(f"{name}{cycle}", value)
            return registered(f"{name}_at_row0", value)

        def valid(name, value):
            cycles = self.input_latency(config)
            for cycle in range(cycles):
                register = Signal(name=f"{name}{cycle}" if cycle < cycles - 1 else f"{name}_at_row0")
                m.d.sync += register.eq(value)
                value = register
            return value

        # The edge registers the words on arrival, and their control.
        later = ReadPort.LATENCY[config.port_latency] - 1
        column = registered("column", delayed(m, mover.column, later, "column_asked"))
        step = registered("step", delayed(m, loader.step, later, "step_asked"))
        fresh = registered("fresh", delayed(m, mover.fresh, later, "fresh_asked"))
        decoded = config.edge_latency
        distance = at_row0("distance", step.distance, decoded)
        swap = valid("swap", mover.column_valid & mover.column.swap)
        load = valid("load", loader.step_valid)

        m.d.comb += [
            datapath.moving.eq(column.element),
            datapath.fresh.eq(fresh),
            datapath.moving_present.eq(members(column.rows, config.rows)),
            datapath.moving_words.eq(self.moving.data),
            datapath.stationary.eq(step.element),
            datapath.stationary_present.eq(members(step.rows, config.rows)),
            datapath.stationary_words.eq(self.stationary.data),
            datapath.swap.eq(swap),
            datapath.load.eq(load),
            datapath.distance.eq(distance),
        ]
        # Operands shown in waveforms.
        row0 = {"moving_row0": datapath.moving_row0}
        row0 |= {f"weights_row0_{column}": weight for column, weight in enumerate(datapath.weights_row0)}
        for name, operand in row0.items():
            shown = Signal.like(operand, name=name)
            m.d.comb += shown.eq(operand)

    def _psum(self, m, mover, datapath, platform):
        """Connect PSUM. The control of the sums is sent one cycle before them."""
        config = self.config
        control = Cat(mover.column_valid, mover.column.write)
        m.submodules.control_line = line = DelayLine(len(control), self.sum_latency(config) - 1)
        m.submodules.psum = psum = Psum(config.columns, config.psum_words, config.add_latency, config.psum_banks)
        m.d.comb += [line.i.eq(control), Cat(psum.valid, psum.write).eq(line.o)]
        wiring.connect(m, wiring.flipped(self.psum), psum.reads)
        wiring.connect(m, wiring.flipped(self.psum_shared), psum.shared_reads)
        wiring.connect(m, wiring.flipped(self.psum_write), psum.writes)

        # A sum shown in waveforms.
        sum0 = Signal(32)
        m.d.comb += [self.psum_reading.eq(psum.reading), psum.sums.eq(datapath.sums), sum0.eq(psum.sums[:32])]

        m.submodules.retire_line = line = DelayLine(1, self.latency(config))
        m.d.comb += [line.i.eq(mover.column_valid & mover.column.last), self.retired.eq(line.o)]

    def _count(self, m, checker, loader, mover):
        in_flight = Signal(range(self.latency(self.config) + 2))
        m.d.sync += in_flight.eq(in_flight + (mover.column_valid & mover.column.last) - self.retired)
        m.d.comb += self.busy.eq(
            checker.busy
            | ~loader.idle
            | ~mover.idle
            | (in_flight != 0)
            | (self.instructions.valid & ~checker.error.valid)
        )
        # After the last load has retired, weights still move along their rows, and loader and mover still count the
        # minimum intervals of steps and instructions and the cycles of a swap; `drain` counts these cycles.
        own = self.config
        cycles = max(self.latency(own), own.load_interval, own.least_interval, own.swap_cycles)
        drain = Signal(range(cycles + 1))
        with m.If(loader.step_valid | mover.column_valid):
            m.d.sync += drain.eq(cycles)
        with m.Elif(drain != 0):
            m.d.sync += drain.eq(drain - 1)
        outside = self.psum.valid | self.psum_shared.valid | self.psum_write.valid
        m.d.comb += self.active.eq(self.busy | (drain != 0) | self.loaded | outside)
        spans = {"k": mover.column.rows, "m": mover.column.write.partitions}
        sizes = [Signal.like(span.end, name=name) for name, span in spans.items()]
        m.d.comb += [size.eq(span.end - span.first) for size, span in zip(sizes, spans.values(), strict=True)]
        macs = Signal(22)
        m.d.comb += macs.eq(sizes[0] * sizes[1])
        count(
            m,
            self.counters,
            busy=self.busy,
            columns=mover.column_valid,
            loads=loader.step_valid,
            wait_weights=mover.wait_weights,
            wait_operand=mover.wait_operand,
            wait_psum=mover.wait_psum,
            macs=Mux(mover.column_valid, macs, 0),
        )
