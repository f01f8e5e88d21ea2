"""Block of vector lanes with shared control."""

from collections.abc import Iterable
from functools import partial

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep, Phase
from neuroncore_rtl.hdl.vector.control import Cast, Chain, Decoded, Events, Finish, LaneTurns, Unit
from neuroncore_rtl.hdl.vector.decode import decode_entry, decode_opcode, slow_op0, slow_op1
from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.hdl.vector.stats import SHARES
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import VECTOR_UNITS
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.elementwise import STATS_ELEMENTS

__all__ = ["VectorBlock", "VectorLanes", "vector_block_name"]

BLOCK_LANES = 8
"""Lanes of a block: a quarter of a TRANSPOSE group, because larger blocks compile slowly."""

_LATENCIES = {
    Unit.QUOTIENT: Fp32Divider.LATENCY,
    Unit.POWER: Fp32Power.LATENCY,
    Unit.MOD: Fp32Divider.REMAINDER_LATENCY,
    Unit.FMOD: Fp32Divider.REMAINDER_LATENCY,
}
"""Cycles of a slow unit from the start of an operation to its result."""

_ONE = FP32.bias << FP32.mantissa_bits


def vector_block_name(name: str, alu_latency: int, units: Iterable[str], partitions: int) -> str:
    """Return the Verilog name of a module: `name`, and the lane parameters that differ from the defaults."""
    depth = f"_latency{alu_latency}" if alu_latency > 1 else ""
    depth += f"_for{partitions}" if partitions > 1 else ""
    return name + depth + "".join(f"_no_{unit}" for unit in VECTOR_UNITS if unit not in units)


def _block_ports(lanes: int) -> dict:
    words = data.ArrayLayout(32, lanes)
    return {
        "valid": In(1),
        "step": In(ElementwiseStep),
        "a": In(words),
        "b": In(words),
        "moved": In(words),
        "result_valid": Out(1),
        "word": Out(words),
        "enable": Out(lanes),
    }


class VectorBlock(wiring.Component):
    """Vector lanes in lockstep. Latency: `latency`; a slow operation adds its unit's excess over an ALU.

    A slow operation is a division or a power. While the lanes execute slow steps, no other steps are in them. A slow
    step waits for its unit, and the next one may follow after the unit's `INTERVAL`, while the unit still computes the
    earlier one. So the next stage keeps the control of the earlier step until that step is done there.

    Arguments:
        lanes: number of lanes of the block.
        alu_latency, units, partitions: see `VectorLane`.

    Ports (few and wide, as each costs simulation time):
        valid, step: a step (`ElementwiseStep`) with the index of the block's first lane.
        a, b: operands, one word per lane.
        moved: one cycle after a step of TRANSPOSE, one word of the transposed column per lane; bits above the element
            are 0.
        result_valid: the step accepted `latency` cycles ago, or longer ago for a slow step, has a result.
        word, enable: one storage word per lane, and whether it is written.
    """

    _OVERLAP = max(
        Fp32Divider.LATENCY - Fp32Divider.INTERVAL,
        Fp32Divider.REMAINDER_LATENCY - Fp32Divider.REMAINDER_INTERVAL,
        Fp32Power.LATENCY - Fp32Power.INTERVAL,
    )
    """Largest number of cycles in which a slow unit has two steps."""

    def __init__(self, lanes: int, alu_latency: int = 1, units: Iterable[str] = VECTOR_UNITS, partitions: int = 1):
        self.lanes = lanes
        self.alu_latency = alu_latency
        self.units = frozenset(units)
        self.partitions = partitions
        self.latency = timing.vector_lanes_latency(alu_latency)
        self._hold = max(self._OVERLAP, alu_latency - 1)
        self._before = timing.VECTOR_ENTRY_LATENCY[alu_latency > 1] - 1
        super().__init__(_block_ports(lanes))

    def elaborate(self, platform):
        m = Module()
        valid = Signal()
        step = Signal(ElementwiseStep, reset_less=True)
        a, b = (Signal.like(self.a, name=name, reset_less=True) for name in ("a_0", "b_0"))
        m.d.sync += valid.eq(self.valid)
        with m.If(self.valid):
            m.d.sync += [step.eq(self.step), a.eq(self.a), b.eq(self.b)]

        entry, load = decode_entry(m, step)
        settled = delayed(m, Cat(valid, load, step.scalar0, step.scalar1), self._before, "settled")
        control, writes = self._stages(m, valid, step, self._word_of_set(m, valid, step))
        constant, share = self._constants(m, valid, step, control["operate"])
        common = {
            "entry": entry,
            "valid": settled[0],
            "load": settled[1 : 1 + len(load.as_value())],
            "scalars": settled[1 + len(load.as_value()) :],
            "key": Cat(step.seed, step.stream),
            "share": share,
            **control,
        }
        index = self._index(m, valid, step)
        moves, moved = Signal(), Signal.like(self.moved, reset_less=True)
        m.d.sync += moves.eq(step.opcode == ElementwiseOpcode.TRANSPOSE)
        with m.If(step.opcode == ElementwiseOpcode.TRANSPOSE):
            m.d.sync += moved.eq(self.moved)
        moves, moved, constant = (
            delayed(m, value, self._before, name)
            for name, value in (("moves", moves), ("moved", moved), ("constant", constant))
        )

        build = partial(VectorLane, self.alu_latency, self.units, self.partitions)
        module = vector_block_name("vector_lane", self.alu_latency, self.units, self.partitions)
        for number in range(self.lanes):
            lane = shared(m, f"lane_{number}", module, build, platform)
            m.d.comb += [getattr(lane, name).eq(value) for name, value in common.items()]
            m.d.comb += [
                lane.a.eq(a[number]),
                lane.b.eq(b[number]),
                lane.index.eq(index + step.index_partition * number),
                lane.given.eq(Mux(moves, moved[number], constant)),
                self.word[number].eq(lane.word),
                self.enable[number].eq(lane.enable),
            ]
        m.d.comb += self.result_valid.eq(writes)
        return m

    def _word_of_set(self, m: Module, valid, step) -> Signal:
        word_of_set, next_of_set = Signal(range(3)), Signal(range(3))
        m.d.comb += word_of_set.eq(Mux(step.first, 0, next_of_set))
        with m.If(valid & (step.phase == Phase.ELEMENT)):
            m.d.sync += next_of_set.eq(Mux(word_of_set == 2, 0, word_of_set + 1))
        return word_of_set

    def _index(self, m: Module, valid, step) -> Signal:
        if self.alu_latency > self._OVERLAP:
            return step.index
        held, index = Signal(64, reset_less=True), Signal(64)
        passed = Signal(self._OVERLAP)
        m.d.sync += passed.eq(Cat(valid, passed))
        with m.If(passed[-1]):
            m.d.sync += held.eq(step.index)
        m.d.comb += index.eq(Mux(slow_op0(step) | slow_op1(step), held, step.index))
        return index

    def _stages(self, m: Module, valid, step, word_of_set):
        decoded = decode_opcode(m, step, word_of_set)
        decoded_1 = Signal(Decoded, reset_less=True)
        events = Signal(Events)
        valid_1, writes_1 = Signal(), Signal(reset_less=True)
        arrives = valid
        for cycle in range(self._before):
            before, arrives = arrives, Signal(name=f"arrives_{cycle}")
            m.d.sync += arrives.eq(before)
        decoded_0, writes_0, silent_0 = (
            delayed(m, value, self._before, name)
            for name, value in (
                ("decoded_0", decoded),
                ("writes_0", step.writes),
                ("silent_0", (step.phase == Phase.LOAD_S0) | (step.phase == Phase.LOAD_S1)),
            )
        )
        m.d.sync += [valid_1.eq(arrives & ~silent_0), events.eq(Mux(arrives, decoded_0.events, 0))]
        with m.If(arrives):
            m.d.sync += [decoded_1.eq(decoded_0), writes_1.eq(writes_0)]
        # Control of the steps inside an ALU.
        late_1, late_writes_1 = (
            delayed(m, value, self.alu_latency - 1, name)
            for name, value in (("decoded_1", decoded_1), ("writes_1", writes_1))
        )

        chain_2, chain = Signal(Chain), Signal(Chain)
        divide, power = Signal(), Signal()
        finish_2, cast_2, writes_2 = Signal(Finish), Signal(Cast, reset_less=True), Signal()
        valid_2, advance_2 = self._passage(m, "op0", valid_1, decoded_1.chain.slow, chain_2.unit)
        with m.If(advance_2):
            m.d.sync += [
                chain_2.eq(late_1.chain),
                finish_2.eq(late_1.finish),
                cast_2.eq(late_1.cast),
                writes_2.eq(late_writes_1),
            ]
        with m.If(valid_2):
            m.d.comb += [
                chain.eq(chain_2),
                divide.eq(finish_2.slow & (finish_2.unit != Unit.POWER)),
                power.eq(finish_2.slow & (finish_2.unit == Unit.POWER)),
            ]
        with m.Else():
            m.d.comb += chain.op.eq(Op.BYPASS)

        finish_3, cast_3, writes_3 = Signal(Finish), Signal(Cast, reset_less=True), Signal()
        valid_3, advance_3 = self._passage(m, "op1", valid_2, finish_2.slow, finish_3.unit)
        meanwhile = self.alu_latency - 1
        late_finish_2, late_cast_2, late_writes_2 = (
            delayed(m, value, meanwhile, name)
            for name, value in (("finish_2", finish_2), ("cast_2", cast_2), ("writes_2", writes_2))
        )
        with m.If(advance_3):
            m.d.sync += [finish_3.eq(late_finish_2), cast_3.eq(late_cast_2), writes_3.eq(late_writes_2)]

        cast_4, writes_4 = Signal(Cast, reset_less=True), Signal()
        m.d.sync += [cast_4.eq(cast_3), writes_4.eq(valid_3 & writes_3)]
        control = {
            "operate": decoded_1.operate,
            "events": events,
            "advance": advance_2,
            "chain": chain,
            "divide": divide,
            "power": power,
            "unit": finish_2.unit,
            "done": valid_3,
            "turns": self._turns(m, valid_1, valid_2, valid_3),
            "finish": finish_3,
            "cast": cast_4,
        }
        return control, self._after(m, writes_4)

    def _turns(self, m: Module, *valid: Value) -> Signal:
        """Return the index of the partition that is processed in each of the stages 1 to 3.

        Each stage counts its steps: all partitions follow in order, and none is skipped.
        """
        turns = Signal(LaneTurns)
        if self.partitions > 1:
            for turn, there in zip(("operate", "chain", "finish"), valid, strict=True):
                count = Signal(range(self.partitions), name=f"turn_of_{turn}")
                m.d.sync += count.eq(count + there)
                m.d.comb += turns[turn].eq(count)
        return turns

    def _after(self, m: Module, writes) -> Signal:
        leaves = Signal(timing.VECTOR_CAST_LATENCY[self.alu_latency > 1])
        m.d.sync += leaves.eq(Cat(writes, leaves))
        return leaves[-1]

    def _passage(self, m: Module, name: str, valid, slow, unit):
        """Advance steps to the next stage.

        Return whether that stage has a step, and the load enable of its control. The load is asserted one cycle before
        the step, or many cycles before a slow step. `unit` computes a slow operation in the next stage.
        """
        there = Signal(name=f"{name}_there")
        waiting = Signal(max(_LATENCIES.values()) - 1, name=f"{name}_waiting")
        place = Signal(len(waiting), name=f"{name}_place")
        with m.Switch(unit):
            for case, latency in _LATENCIES.items():
                with m.Case(case):
                    m.d.comb += place.eq(1 << latency - 2)
        ended = (waiting & place).any()
        passes = valid & ~slow
        for cycle in range(self.alu_latency - 1):
            before, passes = passes, Signal(name=f"{name}_under_way_{cycle}")
            m.d.sync += passes.eq(before)
        # A finished step is removed from `waiting`; otherwise it would finish again at a slower unit's position.
        m.d.sync += [waiting.eq(Cat(valid & slow, waiting & ~place)), there.eq(passes | ended)]
        return there, passes | waiting[self._hold - 1]

    def _constants(self, m: Module, valid, step, operate):
        """Return constants common to all lanes.

        For stage 1: 1.0 for RECIPROCAL, or the number of elements for BN_STATS. For stage 2: `share`, which is 1 / k.
        """
        elements = Signal(range(STATS_ELEMENTS + 1), reset_less=True)
        count, constant = Signal(range(STATS_ELEMENTS // 2 + 1)), Signal(32, reset_less=True)
        with m.If(valid & (step.phase == Phase.ELEMENT)):
            m.d.sync += elements.eq(step.position + 1)
        m.d.comb += count.eq((elements + (step.number == 0)) >> 1)
        normal, shift = normalise(m, count, "count")
        field = Mux(count.any(), FP32.bias + len(count) - 1 - shift, 0)[: FP32.exponent_bits]
        fraction = Cat(Const(0, FP32.mantissa_bits + 1 - len(count)), normal[:-1])
        with m.If(valid):
            m.d.sync += constant.eq(Mux(step.opcode == ElementwiseOpcode.RECIPROCAL, _ONE, Cat(fraction, field)))

        m.submodules.shares = shares = Memory(shape=32, depth=len(SHARES), init=SHARES)
        port = shares.read_port()
        m.d.comb += port.addr.eq(operate.position[1:])
        return constant, port.data


class VectorLanes(wiring.Component):
    """All lanes of the engine, divided into blocks. Parameters and ports are like those of `VectorBlock`."""

    def __init__(self, lanes: int, alu_latency: int = 1, units: Iterable[str] = VECTOR_UNITS, partitions: int = 1):
        self.lanes = lanes
        self.alu_latency = alu_latency
        self.units = frozenset(units)
        self.partitions = partitions
        super().__init__(_block_ports(lanes))

    def elaborate(self, platform):
        m = Module()
        parameters = self.alu_latency, self.units, self.partitions
        for first in range(0, self.lanes, BLOCK_LANES):
            count = min(BLOCK_LANES, self.lanes - first)
            build = partial(VectorBlock, count, *parameters)
            module = vector_block_name(f"vector_block_{count}", *parameters)
            block = shared(m, f"block_{first}", module, build, platform)
            part, words = slice(first, first + count), slice(32 * first, 32 * (first + count))
            step = Signal(ElementwiseStep, name=f"step_{first}")
            m.d.comb += [
                step.eq(self.step),
                step.index.eq(self.step.index + self.step.index_partition * first),
                block.valid.eq(self.valid),
                block.step.eq(step),
                *(getattr(block, name).eq(getattr(self, name).as_value()[words]) for name in ("a", "b", "moved")),
                self.word.as_value()[words].eq(block.word),
                self.enable[part].eq(block.enable),
            ]
            if not first:
                m.d.comb += self.result_valid.eq(block.result_valid)
        return m
