"""Block of activation lanes, with shared tables and a shared control pipeline.

A block is converted to Verilog, and compiled for simulation, only once.
"""

from collections.abc import Iterable
from functools import partial

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep, Phase
from neuroncore_rtl.hdl.scalar.lane import STAGES, ActivationLane
from neuroncore_rtl.hdl.scalar.number import decode_number
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, FunctionTables
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import SCALAR_UNITS

__all__ = ["LANE_BITS", "ActivationBlock", "ActivationLanes", "scalar_block_name"]

BLOCK_LANES = 16
"""Lanes of a block, the number that simulates fastest; the last block may have fewer."""

LANE_BITS = 11
"""Width of a lane's index, or of a number of lanes."""


def scalar_block_name(name: str, depth: int, units: Iterable[str], partitions: int) -> str:
    """Return the Verilog name of a module: `name`, and the lane parameters that differ from the defaults."""
    spelt = f"_depth{depth}" if depth > 1 else ""
    spelt += f"_for{partitions}" if partitions > 1 else ""
    return name + spelt + "".join(f"_no_{unit}" for unit in SCALAR_UNITS if unit not in units)


class ActivationBlock(wiring.Component):
    """Lanes in lockstep, one step per cycle.

    Arguments:
        lanes: number of lanes of the block.
        depth, units, partitions: see `ActivationLane`.

    Ports (few and wide, as each costs simulation time):
        valid, step: a step (`hdl.elementwise.step.ElementwiseStep`).
        a: one element per lane.
        first_lane: index of the first lane in the engine; constant.
        words: one result per lane, `latency` cycles after the step.
    """

    def __init__(self, lanes: int, depth: int = 1, units: Iterable[str] = SCALAR_UNITS, partitions: int = 1):
        self.lanes = lanes
        self._build = partial(ActivationLane, depth, units, partitions)
        self._module = scalar_block_name("activation_lane", depth, units, partitions)
        self._stages = STAGES[depth]
        self._draws = "random" in units
        self.latency = 1 + self._stages.latency
        words = data.ArrayLayout(32, lanes)
        super().__init__(
            {
                "valid": In(1),
                "step": In(ElementwiseStep),
                "a": In(words),
                "first_lane": In(LANE_BITS),
                "words": Out(words),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = [shared(m, f"lane{i}", self._module, self._build, platform) for i in range(self.lanes)]
        m.submodules.tables = tables = FunctionTables(self.lanes)
        for lane, reader in zip(lanes, tables.readers, strict=True):
            wiring.connect(m, lane.tables, reader)

        control = _Control(m, self.step, self.valid)
        a = Signal.like(self.a, name="a_0", reset_less=True)
        m.d.sync += a.eq(self.a)
        for name, value in self._common(m, control).items():
            shared_by_all = Signal.like(value, name=f"all_{name}")
            m.d.comb += shared_by_all.eq(value)
            m.d.comb += [getattr(lane, name).eq(shared_by_all) for lane in lanes]
        indices = self._indices(m, control) if self._draws else [Const(0, 64)] * self.lanes
        adds = self._adds(m, control)
        for i, lane in enumerate(lanes):
            m.d.comb += [
                lane.a.eq(a[i]),
                lane.index.eq(indices[i]),
                lane.adds.eq(adds[i]),
                self.words[i].eq(lane.word),
            ]
        return m

    def _common(self, m: Module, control) -> dict:
        stages = self._stages
        entering, loading = control.at(0), control.at(stages.widen)
        adding, rounding = control.at(stages.sum), control.at(stages.round)
        alpha = decode_number(m, control.at(stages.alpha - 1).alpha, "alpha")
        late_alpha = Signal.like(alpha, reset_less=True)
        m.d.sync += late_alpha.eq(alpha)
        element = loading.valid & (loading.phase == Phase.ELEMENT)
        return {
            "dtype": entering.a_dtype,
            "turn0": loading.valid,
            "turn1": adding.valid,
            "load0": loading.valid & (loading.phase == Phase.LOAD_S0),
            "load1": loading.valid & (loading.phase == Phase.LOAD_S1),
            "immediate0": element & ~loading.pointer0,
            "immediate1": element & ~loading.pointer1,
            "scalar0": loading.scalar0,
            "scalar1": loading.scalar1,
            "function": control.at(stages.function).function[:FUNCTION_BITS],
            "alpha": late_alpha,
            "restart": adding.first & ~adding.sum_continue,
            "shows_sum": adding.phase == Phase.RESULT,
            "dst_dtype": rounding.dst_dtype,
            **self._draw(control),
        }

    def _draw(self, control) -> dict:
        if not self._draws:
            return {}
        random, rounding = control.at(self._stages.random), control.at(self._stages.round)
        return {"seed": random.seed, "stream": random.stream, "stochastic": rounding.stochastic}

    def _indices(self, m, control):
        early, late = (control.at(self._stages.random - cycles) for cycles in (2, 1))
        first = Signal(64, name="first_index", reset_less=True)
        m.d.sync += first.eq(_sum64(m, "first", early.index, early.index_partition * self.first_lane))
        indices = [Signal(64, name=f"index{i}", reset_less=True) for i in range(self.lanes)]
        for i, index in enumerate(indices):
            m.d.sync += index.eq(_sum64(m, f"lane{i}", first, late.index_partition * i))
        return indices

    def _adds(self, m, control):
        early = control.at(self._stages.sum - 1)
        taking = Signal(range(self.lanes + 1))
        adds = Signal(self.lanes)
        element = early.valid & (early.phase == Phase.ELEMENT)
        with m.If(early.partitions > self.first_lane):
            left = early.partitions - self.first_lane
            m.d.comb += taking.eq(Mux(left > self.lanes, self.lanes, left))
        m.d.sync += adds.eq(Cat(element & (i < taking) for i in range(self.lanes)))
        return adds


class ActivationLanes(wiring.Component):
    """All lanes of the engine, divided into blocks.

    Parameters and ports are like those of `ActivationBlock`, except `first_lane`.
    """

    def __init__(self, lanes: int, depth: int = 1, units: Iterable[str] = SCALAR_UNITS, partitions: int = 1):
        self.lanes = lanes
        self.parameters = depth, frozenset(units), partitions
        words = data.ArrayLayout(32, lanes)
        super().__init__({"valid": In(1), "step": In(ElementwiseStep), "a": In(words), "words": Out(words)})

    def elaborate(self, platform):
        m = Module()
        for first in range(0, self.lanes, BLOCK_LANES):
            width = min(BLOCK_LANES, self.lanes - first)
            build = partial(ActivationBlock, width, *self.parameters)
            module = scalar_block_name(f"activation_block_{width}", *self.parameters)
            block = shared(m, f"block{first}", module, build, platform)
            words = slice(32 * first, 32 * (first + width))
            m.d.comb += [
                block.valid.eq(self.valid),
                block.step.eq(self.step),
                block.a.eq(self.a.as_value()[words]),
                block.first_lane.eq(first),
                self.words.as_value()[words].eq(block.words),
            ]
        return m


def _sum64(m: Module, name: str, a: Value, b: Value) -> Value:
    """Return a + b modulo 2**64, where b is signed.

    The sum is computed in halves, because simulators are slow beyond 64 bits.
    """
    addend = Signal(signed(64), name=f"{name}_addend")
    low = Signal(33, name=f"{name}_low")
    m.d.comb += [addend.eq(b), low.eq(a[:32] + addend[:32])]
    return Cat(low[:32], (a[32:] + addend[32:] + low[32])[:32])


class _Control:
    """Shift registers that delay the fields of a step, as long as the largest delay used.

    Arguments:
        m: the block's module.
        step: the step at the input of the block.
        valid: the input has a step. Unlike the fields of the step, the delayed bits are cleared by a reset.
    """

    def __init__(self, m: Module, step, valid: Value):
        self._m = m
        self._step = step
        self._chains = {"valid": [valid]}

    def at(self, cycles: int):
        return _Moment(self, cycles)

    def field(self, name: str, cycles: int):
        if name not in self._chains:
            self._chains[name] = [self._step[name]]
        chain = self._chains[name]
        while len(chain) < cycles + 2:
            late = Signal.like(chain[-1], name=f"{name}_{len(chain) - 1}", reset_less=name != "valid")
            self._m.d.sync += late.eq(chain[-1])
            chain.append(late)
        return chain[cycles + 1]


class _Moment:
    def __init__(self, control: _Control, cycles: int):
        self._control = control
        self._cycles = cycles

    def __getattr__(self, name: str):
        return self._control.field(name, self._cycles)
