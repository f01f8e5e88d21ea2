"""Lanes that serve several partitions: of each step the words go in one partition after the other, and what comes out
is gathered.

    step, words of all partitions -> Turns -> step, words of some -> lanes -> Turns -> results of all partitions

With `turns` of them, lane i of n serves partitions i, i + n, i + 2 n ...; a step of the engine is so many steps of the
lanes, which differ in index and in how many partitions take part.
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
    """Return what a value was as many turns ago as it is until the same partition has its turn again: itself if there
    is one, else it has a register for each of the others.

    Arguments:
        m: the module. value: a signal, what belongs to the partition whose turn it is. turns: partitions.
        turn: it goes to the next one. name: of the registers.
    """
    for number in range(1, turns):
        late = Signal.like(value, name=f"{name}_{number}")
        with m.If(turn):
            m.d.sync += late.eq(value)
        value = late
    return value


def serve(m: Module, frontend, config: Config, moved: Value | None = None) -> SimpleNamespace:
    """Return what the lanes of an engine get and give: valid, step, a, b, moved, and result_valid, word, enable.

    It is what the front end has (:class:`hdl.elementwise.frontend.Frontend`) or, if a lane serves several partitions,
    a :class:`Turns` between the two.

    Arguments:
        m: the engine's module. frontend: its front end. config: the machine's parameters.
        moved: words of transposed columns, if there are any.
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
    """Between the front end of an element-wise engine and its lanes.

    Arguments:
        partitions: of the engine. turns: partitions of a lane, more than one; a divisor of `partitions`.

    Ports, those of the engine's side:
        valid, step, a, b: a step, no sooner than `turns` cycles after the one before; words of all partitions.
        moved: of a step of TRANSPOSE, a cycle later: words of the transposed column.
        result_valid, word, enable: results of all partitions, and whether each is written.
    and of the lanes':
        lanes_valid, lanes_step, lanes_a, lanes_b: the same for some partitions, the first ones a cycle after the step.
        lanes_moved: a cycle later.
        lanes_result_valid, lanes_word, lanes_enable: results of the lanes, in order.

    A result is `spec.timing.turns_latency` cycles later than it comes out of lanes that get their steps at once.
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
        """Cycles by which results are later."""
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
        """Keep a step, and what of it differs from turn to turn."""
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
        """Keep the results of all turns but the last one's, with which they go."""
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
            # The oldest in front.
            for (word, enable), (newer, newer_enable) in zip(kept, [*kept[1:], (words, enables)], strict=True):
                m.d.sync += [word.eq(newer), enable.eq(newer_enable)]
        m.d.comb += [
            self.word.eq(Cat(*(word for word, _ in kept), words)),
            self.enable.eq(Cat(*(enable for _, enable in kept), enables)),
        ]
