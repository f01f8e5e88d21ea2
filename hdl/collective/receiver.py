"""Receive path of a channel: copies or reduces data from network and memory, to memory and the next core.

    net  --+-> [a] --+
           |         +-> reduce -> ... -> round, pack -> results -+-> store
    load --+-> [b] --+                                            +-> forward

A step is the work of the lanes in a cycle: one beat of a copy, or one reduced element per lane. The pipeline between
[a] and the results never stalls: a step begins only if its result has room.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.lanes import Reducer
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, ReceiveOp, StoreOp, beats_of
from neuroncore_rtl.hdl.collective.rounding import Rounding
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_WIDTHS, CollectiveType

__all__ = ["ReceivePath"]

_CONTROL = data.StructLayout({"emits": 1, "rounds": 1, "odd": 1, "stochastic": 1, "store": 1, "forward": 1})
"""Control of a step. `emits`: it completes a result beat. `odd`: it computes the upper half of a BF16 beat."""


class ReceivePath(wiring.Component):
    """Executes one step per cycle, also across operations; `LATENCY` cycles from a step to its beat.

    A step of a reduction consumes one beat per source and produces one. A BF16 reduction differs, as its load beats are
    always wide (FP32): a net beat of BF16 serves two steps, and a result beat of BF16 is made in two steps. After an
    odd number of steps, the upper half of the last result beat is 0.

    Ports:
        ops: receive operations, in order; the next one is accepted in the last step of the previous one.
        load: beats from the Loader, except those for the Sender.
        seed: seed of stochastic rounding; stable, like `stream`, while an operation is here.
        store_ops: the operations that store, each sent in the cycle of its acceptance and before all of its beats.
        store: result beats to store, in the stored format: BF16 is not extended to FP32.
        forward: result beats for the Sender. A beat for both `store` and `forward` is offered to each until it accepts
            the beat.
        idle: the receive path holds no operation and no beat.
        wait_net: a step stalls because the beat of the other core is missing.
        wait_load: a step stalls only because the beat from the Loader is missing.
        wait_room: a step stalls only because the result FIFO is full.
    """

    LATENCY = 1 + Rounding.RANDOM_LATENCY + 2
    """Cycles from accepting a step's beats to its result on `store` and `forward`, without stalls."""

    RESULTS = 16
    """Entries for result beats, reserved per step; more than the latency, so that they do not limit throughput."""

    def __init__(self, link_bytes: int):
        self.link_bytes = link_bytes
        beat = stream.Signature(8 * link_bytes)
        super().__init__(
            {
                "ops": In(stream.Signature(ReceiveOp)),
                "net": In(beat),
                "load": In(beat),
                "seed": In(COLLECTIVE_WIDTHS["seed"]),
                "stream": In(COLLECTIVE_WIDTHS["stream"]),
                "store_ops": Out(stream.Signature(StoreOp)),
                "store": Out(beat),
                "forward": Out(beat),
                "idle": Out(1),
                "wait_net": Out(1),
                "wait_load": Out(1),
                "wait_room": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reducer = Reducer(self.link_bytes)
        m.submodules.rounding = Rounding(self.link_bytes)
        result = data.StructLayout({"beat": 8 * self.link_bytes, "store": 1, "forward": 1})
        m.submodules.results = results = BufferedFifo(result, self.RESULTS)
        self._now, self._active = Signal(ReceiveOp, reset_less=True), Signal()
        self._steps, self._last = Signal(), Signal()
        self._odd = Signal()  # the step computes the upper half of a BF16 beat
        self._reduces, self._bf16 = Signal(), Signal()
        first = self._take_operations(m)
        control = self._step(m, free := Signal(range(self.RESULTS + 1), init=self.RESULTS))
        self._operate(m, control, first)
        self._finish(m, *self._delay(m, control))
        self._deliver(m, results)
        m.d.sync += free.eq(free - (self._steps & control.emits) + results.o.ready)
        m.d.comb += self.idle.eq(~self._active & (free == self.RESULTS))
        return m

    def _take_operations(self, m: Module) -> Signal:
        """Accept the next operation in the last step of the previous one.

        Return the index of the step's first element.
        """
        coming, active, takes, ends = self.ops.payload, self._active, Signal(), Signal()
        left, first = Signal(ELEMENTS_BITS, reset_less=True), Signal(len(coming.first_element), reset_less=True)
        beats = beats_of(m, "beats", coming.elements, coming.dtype, coming.net & coming.load, self.link_bytes)
        m.d.comb += [
            self.store_ops.valid.eq(self.ops.valid & coming.store & (~active | ends)),
            self.store_ops.payload.dtype.eq(coming.dtype),
            self.store_ops.payload.elements.eq(coming.elements),
            self.store_ops.payload.address.eq(coming.store_address),
            self.ops.ready.eq((~active | ends) & (~coming.store | self.store_ops.ready)),
            takes.eq(self.ops.valid & self.ops.ready),
            self._last.eq(left == 1),
            ends.eq(self._steps & self._last),
        ]
        with m.If(takes):
            m.d.sync += [active.eq(1), self._now.eq(coming), left.eq(beats), first.eq(coming.first_element)]
        with m.Elif(ends):
            m.d.sync += active.eq(0)
        with m.If(self._steps), m.If(~self._last):
            m.d.sync += [left.eq(left - 1), first.eq(first + self.link_bytes // 4)]
        return first

    def _step(self, m: Module, free: Signal) -> Signal:
        """Execute a step if all its beats are present and the result FIFO has a `free` entry."""
        now, active, steps, odd, room = self._now, self._active, self._steps, self._odd, Signal()
        control = Signal(_CONTROL)
        m.d.comb += [
            self._reduces.eq(now.net & now.load),
            self._bf16.eq(now.dtype == CollectiveType.BF16),
            room.eq(free != 0),
            self.wait_net.eq(active & now.net & ~self.net.valid),
            self.wait_load.eq(active & ~self.wait_net & now.load & ~self.load.valid),
            self.wait_room.eq(active & ~self.wait_net & ~self.wait_load & ~room),
            steps.eq(active & ~self.wait_net & ~self.wait_load & room),
            control.rounds.eq(self._reduces & self._bf16 & ~now.wide_out),
            control.odd.eq(odd),
            control.emits.eq(~control.rounds | odd | self._last),
            control.stochastic.eq(control.rounds & now.final & now.stochastic),
            control.store.eq(now.store),
            control.forward.eq(now.forward),
        ]
        with m.If(steps):
            m.d.sync += odd.eq(~odd & ~self._last)
        return control

    def _operate(self, m: Module, control: Signal, first: Signal) -> None:
        """Connect a step's operands to the lanes.

        Operands that a step does not use keep their values, so that the lanes do not toggle.
        """
        reducer, rounding = m.submodules.reducer, m.submodules.rounding
        now, steps, odd, bits = self._now, self._steps, self._odd, 8 * self.link_bytes
        a, b = (Signal(bits, name=name, reset_less=True) for name in "ab")
        number, expands = Signal(len(first), reset_less=True), Signal()
        half = Mux(odd, self.net.payload[bits // 2 :], self.net.payload[: bits // 2])
        m.d.comb += [
            expands.eq(self._reduces & self._bf16 & ~now.wide_in),
            self.net.ready.eq(steps & now.net & (~expands | odd | self._last)),
            self.load.ready.eq(steps & now.load),
            reducer.a.eq(a),
            reducer.b.eq(b),
            rounding.first.eq(number),
            rounding.seed.eq(self.seed),
            rounding.stream.eq(self.stream),
        ]
        with m.If(steps):
            m.d.sync += [
                a.eq(Mux(expands, _widen(half), Mux(now.net, self.net.payload, self.load.payload))),
                reducer.op.eq(now.op),
                reducer.integer.eq(now.dtype == CollectiveType.INT32),
                reducer.copy.eq(~self._reduces),
                number.eq(first),
            ]
        with m.If(steps & self._reduces):
            m.d.sync += b.eq(self.load.payload)

    def _delay(self, m: Module, control: Signal) -> tuple[Signal, Signal, Signal]:
        """Delay the lanes' results and control until the rounding's random words are available.

        Return the results, their valid bit and their control.
        """
        value, valid = m.submodules.reducer.out, self._steps
        for stage in range(Rounding.RANDOM_LATENCY + 1):
            late_valid = Signal(name=f"valid{stage}")
            late_control = Signal(_CONTROL, name=f"control{stage}", reset_less=True)
            m.d.sync += late_valid.eq(valid)
            with m.If(valid):
                m.d.sync += late_control.eq(control)
            if stage > Reducer.LATENCY:
                late_value = Signal.like(value, name=f"value{stage}", reset_less=True)
                with m.If(valid):
                    m.d.sync += late_value.eq(value)
                value = late_value
            valid, control = late_valid, late_control
        return value, valid, control

    def _finish(self, m: Module, value: Signal, valid: Signal, control: Signal) -> None:
        rounding, results, bits = m.submodules.rounding, m.submodules.results, 8 * self.link_bytes
        lower = Signal(bits // 2, reset_less=True)
        rounded = Mux(control.odd, Cat(lower, rounding.out), Cat(rounding.out, Const(0, bits // 2)))
        m.d.comb += [
            rounding.value.eq(value),
            rounding.stochastic.eq(control.stochastic),
            results.i.valid.eq(valid & control.emits),
            results.i.payload.beat.eq(Mux(control.rounds, rounded, value)),
            results.i.payload.store.eq(control.store),
            results.i.payload.forward.eq(control.forward),
        ]
        with m.If(valid & control.rounds & ~control.odd):
            m.d.sync += lower.eq(rounding.out)

    def _deliver(self, m: Module, results: BufferedFifo) -> None:
        """Offer the oldest result to each of its outputs until that output has accepted it."""
        result, missing = results.o.payload, []
        for name, port, wanted in (
            ("store", self.store, result.store),
            ("forward", self.forward, result.forward),
        ):
            taken = Signal(name=f"{name}_taken")
            m.d.comb += [port.valid.eq(results.o.valid & wanted & ~taken), port.payload.eq(result.beat)]
            missing.append(port.valid & ~port.ready)
            with m.If(results.o.ready):
                m.d.sync += taken.eq(0)
            with m.Elif(port.valid & port.ready):
                m.d.sync += taken.eq(1)
        m.d.comb += results.o.ready.eq(results.o.valid & ~Cat(*missing).any())


def _widen(half: Mux) -> Cat:
    return Cat(*(Cat(Const(0, 16), half[n : n + 16]) for n in range(0, len(half), 16)))
