"""Time multiplexing of lanes that serve several partitions: distributes a step's words and gathers the results.

    step, words of all partitions -> Turns -> step, words of some -> lanes -> Turns -> results of all partitions

With `turns` partitions per lane, lane i of n serves partitions i, i + n, i + 2 n ... A step of the engine becomes
`turns` steps of the lanes, one per turn, which differ in the index and in the number of lanes with a partition.
"""

from types import SimpleNamespace

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config

__all__ = ["Turns", "in_turn", "serve"]

_WORD = 32


def in_turn(m: Module, value: Value, turns: int, turn: Value, name: str) -> Value:
    """Delay a register's value by `turns` - 1 turns, so that feedback through it reaches the same partition again.

    Arguments:
        m: the module.
        value: value of the current partition, in a register.
        turns: number of partitions that the lane serves.
        turn: the lane advances to its next partition at the end of this cycle.
        name: prefix of the registers in waveforms.
    """
    for number in range(1, turns):
        late = Signal.like(value, name=f"{name}_{number}")
        with m.If(turn):
            m.d.sync += late.eq(value)
        value = late
    return value


def serve(m: Module, frontend, config: Config, moved: Value | None = None) -> SimpleNamespace:
    """Return the signals between an engine and its lanes: valid, step, a, b, moved, result_valid, word, enable.

    They connect to the front end (`hdl.elementwise.frontend.Frontend`) or, if a lane serves several partitions,
    to a `Turns` in between.

    Arguments:
        m: the engine's module.
        frontend: the engine's front end.
        config: the machine's parameters.
        moved: words of transposed columns; default: none.
    """
    outer = {"valid": frontend.lanes_valid, "step": frontend.lanes_step, "a": frontend.lanes_a, "b": frontend.lanes_b}
    if moved is not None:
        outer["moved"] = moved
    results = {"result_valid": frontend.result_valid, "word": frontend.result, "enable": frontend.result_enable}
    if config.lane_partitions == 1:
        return SimpleNamespace(**outer, **results)
    m.submodules.turns = turns = Turns(config.partitions, config.lane_partitions)
    m.d.comb += [getattr(turns, name).eq(value) for name, value in outer.items()]
    m.d.comb += [value.eq(getattr(turns, name)) for name, value in results.items()]
    return SimpleNamespace(**{name: getattr(turns, f"lanes_{name}") for name in ("moved", *outer, *results)})


class Turns(wiring.Component):
    """Time multiplexer between the front end of an element-wise engine and its lanes.

    Adds `spec.timing.turns_latency` cycles to the lanes' latency.

    Arguments:
        partitions: partitions of the engine.
        turns: number of partitions that each lane serves in turn, at least 2; a divisor of `partitions`.

    Ports to the engine:
        valid, step, a, b: a step, at least `turns` cycles after the previous one, with the words of all partitions.
        moved: words of the transposed column, a cycle after a step of TRANSPOSE.
        result_valid, word, enable: results of all partitions, and whether each is written.

    Ports to the lanes:
        lanes_valid, lanes_step, lanes_a, lanes_b: step and words of one turn; the first turn is one cycle after the
            step.
        lanes_moved: words of `moved` for the same turn, one cycle after the lanes' step.
        lanes_result_valid, lanes_word, lanes_enable: results of the lanes, in order.
    """

    def __init__(self, partitions: int, turns: int):
        self.partitions = partitions
        self.turns = turns
        self.lanes = partitions // turns
        words, some = _WORD * partitions, _WORD * self.lanes
        super().__init__(
            {
                "valid": In(1), "step": In(ElementwiseStep), "a": In(words), "b": In(words), "moved": In(words),
                "result_valid": Out(1), "word": Out(words), "enable": Out(partitions),
                "lanes_valid": Out(1), "lanes_step": Out(ElementwiseStep), "lanes_a": Out(some), "lanes_b": Out(some),
                "lanes_moved": Out(some),
                "lanes_result_valid": In(1), "lanes_word": In(some), "lanes_enable": In(self.lanes),
            }
        )  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles that this unit adds to the latency of the lanes."""
        return timing.turns_latency(self.turns)

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.turns + 1))
        first = Signal()
        m.d.comb += [self.lanes_valid.eq(left.any()), first.eq(left == self.turns)]
        with m.If(self.valid):
            m.d.sync += left.eq(self.turns)
        with m.Elif(self.lanes_valid):
            m.d.sync += left.eq(left - 1)

        self._step(m)
        for name, load in (("a", self.valid), ("b", self.valid), ("moved", first)):
            words = Signal(_WORD * self.partitions, name=f"{name}_words", reset_less=True)
            some = _WORD * self.lanes
            m.d.sync += words.eq(Mux(load, getattr(self, name), words >> some))
            m.d.comb += getattr(self, f"lanes_{name}").eq(words[:some])
        self._gather(m)
        return m

    def _step(self, m: Module) -> None:
        """Hold a step for all turns, and update the fields that depend on the turn: index and number of partitions."""
        step = Signal(ElementwiseStep, reset_less=True)
        m.d.comb += self.lanes_step.eq(step)
        with m.If(self.valid):
            m.d.sync += step.eq(self.step)
        with m.Else():
            m.d.sync += [
                step.index.eq(step.index + step.index_partition * self.lanes),
                step.partitions.eq(Mux(step.partitions > self.lanes, step.partitions - self.lanes, 0)),
            ]

    def _gather(self, m: Module) -> None:
        """Hold the lanes' results of all turns except the last; output them with the results of the last turn."""
        come = Signal(range(self.turns))
        last = Signal()
        m.d.comb += [last.eq(come == self.turns - 1), self.result_valid.eq(self.lanes_result_valid & last)]
        words, enables = self.lanes_word, self.lanes_enable
        kept = []
        for number in range(self.turns - 1):
            word, enable = (
                Signal.like(value, name=f"{name}_{number}", reset_less=True)
                for name, value in (("word", words), ("enable", enables))
            )
            kept.append((word, enable))
        with m.If(self.lanes_result_valid):
            m.d.sync += come.eq(Mux(last, 0, come + 1))
            # The oldest result is first.
            for (word, enable), (newer, newer_enable) in zip(kept, [*kept[1:], (words, enables)], strict=True):
                m.d.sync += [word.eq(newer), enable.eq(newer_enable)]
        m.d.comb += [
            self.word.eq(Cat(*(word for word, _ in kept), words)),
            self.enable.eq(Cat(*(enable for _, enable in kept), enables)),
        ]
