"""Neighbouring activation lanes with what they share: the tables, and the pipeline of the control bits.

A block is converted to Verilog, and compiled for simulation, once for all of a machine.
"""

from functools import partial

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.step import Phase, Step
from neuroncore_rtl.hdl.hierarchy import shared
from neuroncore_rtl.hdl.scalar.lane import ActivationLane
from neuroncore_rtl.hdl.scalar.number import decode
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, FunctionTables

__all__ = ["LANE_BITS", "ActivationBlock", "ActivationLanes"]

BLOCK_LANES = 16
"""Lanes of a block, the last one of an engine may have fewer: as many as simulate fastest."""

LANE_BITS = 11
"""Width of a number, or a count, of lanes."""


class ActivationBlock(wiring.Component):
    """Lanes that take a step in the same cycle, one step per cycle.

    Arguments:
        lanes: how many.

    Ports, few and wide, as each costs time at the boundary of a block that is compiled apart:
        valid, step: a step (:class:`hdl.elementwise.step.Step`).
        a: its elements, one a lane.
        first_lane: number of the first lane in the engine; constant.
        words: the lanes' results, `LATENCY` cycles later.
    """

    LATENCY = 1 + ActivationLane.LATENCY

    def __init__(self, lanes: int):
        self.lanes = lanes
        words = data.ArrayLayout(32, lanes)
        super().__init__(
            {"valid": In(1), "step": In(Step), "a": In(words), "first_lane": In(LANE_BITS), "words": Out(words)}
        )

    def elaborate(self, platform):
        m = Module()
        lanes = [shared(m, f"lane{i}", "activation_lane", ActivationLane, platform) for i in range(self.lanes)]
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
        indices = self._indices(m, control)
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
        """Return what all lanes get, by port."""
        entering = control.at(0)
        random = control.at(ActivationLane.RANDOM_DELAY)
        adding = control.at(ActivationLane.SUM_DELAY)
        alpha = decode(m, control.at(ActivationLane.ALPHA_DELAY - 1).alpha, "alpha")
        late_alpha = Signal.like(alpha, reset_less=True)
        m.d.sync += late_alpha.eq(alpha)
        element = entering.valid & (entering.phase == Phase.ELEMENT)
        return {
            "dtype": entering.a_dtype,
            "load0": entering.valid & (entering.phase == Phase.LOAD_S0),
            "load1": entering.valid & (entering.phase == Phase.LOAD_S1),
            "immediate0": element & ~entering.pointer0,
            "immediate1": element & ~entering.pointer1,
            "scalar0": entering.scalar0,
            "scalar1": entering.scalar1,
            "function": control.at(ActivationLane.FUNCTION_DELAY).function[:FUNCTION_BITS],
            "alpha": late_alpha,
            "seed": random.seed,
            "stream": random.stream,
            "restart": adding.first & ~adding.sum_continue,
            "shows_sum": adding.phase == Phase.RESULT,
            "dst_dtype": adding.dst_dtype,
            "stochastic": adding.stochastic,
        }

    def _indices(self, m, control):
        """The number of each lane's element in its tensor, when random words are begun."""
        early, late = control.at(ActivationLane.RANDOM_DELAY - 2), control.at(ActivationLane.RANDOM_DELAY - 1)
        first = Signal(64, name="first_index", reset_less=True)
        m.d.sync += first.eq(_sum64(m, "first", early.index, early.index_partition * self.first_lane))
        indices = [Signal(64, name=f"index{i}", reset_less=True) for i in range(self.lanes)]
        for i, index in enumerate(indices):
            m.d.sync += index.eq(_sum64(m, f"lane{i}", first, late.index_partition * i))
        return indices

    def _adds(self, m, control):
        """Whether each lane adds to its running sum: in steps with an element, if the lane takes part."""
        early = control.at(ActivationLane.SUM_DELAY - 1)
        taking = Signal(range(self.lanes + 1))
        adds = Signal(self.lanes)
        element = early.valid & (early.phase == Phase.ELEMENT)
        with m.If(early.partitions > self.first_lane):
            left = early.partitions - self.first_lane
            m.d.comb += taking.eq(Mux(left > self.lanes, self.lanes, left))
        m.d.sync += adds.eq(Cat(element & (i < taking) for i in range(self.lanes)))
        return adds


class ActivationLanes(wiring.Component):
    """All lanes, in blocks.

    Arguments, ports: those of :class:`ActivationBlock`, but for `first_lane`.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        words = data.ArrayLayout(32, lanes)
        super().__init__({"valid": In(1), "step": In(Step), "a": In(words), "words": Out(words)})

    def elaborate(self, platform):
        m = Module()
        for first in range(0, self.lanes, BLOCK_LANES):
            width = min(BLOCK_LANES, self.lanes - first)
            block = shared(m, f"block{first}", f"activation_block_{width}", partial(ActivationBlock, width), platform)
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
    """Return a + b modulo 2**64 of an unsigned and a signed number, in halves: simulators are slow beyond 64 bits."""
    addend = Signal(signed(64), name=f"{name}_addend")
    low = Signal(33, name=f"{name}_low")
    m.d.comb += [addend.eq(b), low.eq(a[:32] + addend[:32])]
    return Cat(low[:32], (a[32:] + addend[32:] + low[32])[:32])


class _Control:
    """The fields of a step, each as late as it is wanted; a field has registers as far as somebody wants it.

    Arguments:
        m: the block's module.
        step: what enters it.
        valid: whether there is a step; cleared by a reset, unlike the others.
    """

    def __init__(self, m: Module, step, valid: Value):
        self._m = m
        self._step = step
        self._chains = {"valid": [valid]}

    def at(self, cycles: int):
        """Return an object whose attributes are the fields, `cycles` after the block's input registers."""
        return _Moment(self, cycles)

    def field(self, name: str, cycles: int):
        """Return one field, `cycles` after the block's input registers."""
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
