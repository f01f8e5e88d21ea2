"""The way of what a channel receives, from the network or memory or both reduced, to memory and to the next core.

    net  --+-> [a] --+
           |         +-> reduce -> ... -> round, pack -> results -+-> store
    load --+-> [b] --+                                            +-> forward

A step is what the lanes do in a cycle: one beat of a copy, or as many elements of a reduction as the lanes are. Nothing
stops between [a] and the results: a step begins only where there is room for what comes of it.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.lanes import Reducer
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, ReceiveOp, StoreOp, beats_of
from neuroncore_rtl.hdl.collective.rounding import Rounding
from neuroncore_rtl.hdl.fifo import BufferedFifo
from neuroncore_rtl.spec.isa.collective import CollectiveType

__all__ = ["ReceivePath"]

_CONTROL = data.StructLayout({"emits": 1, "rounds": 1, "odd": 1, "stochastic": 1, "store": 1, "forward": 1})
"""What accompanies a step. emits: it completes a beat. odd: it has the upper half of a beat of BF16."""


class ReceivePath(wiring.Component):
    """One step a cycle, across operations, too; `LATENCY` cycles from a step to its beat.

    A reduction takes a beat of either source, and gives one; but of BF16, load beats are always wide. With net beats
    that are raw (narrow) a net beat lasts two steps, and with a result that is raw (narrow, or final) two steps make
    one beat. An operation with an odd number of them ends with half a beat; the other half is 0.

    Arguments:
        link_bytes: of a beat.

    Ports:
        ops: what to do, in order; one is taken as the last step of the previous one is done.
        net, load: beats for it; load has none that are to be sent.
        seed, stream: for stochastic rounding; they stay while an operation is in here.
        store_ops: of an operation that stores, in the cycle in which it is taken, and before all of its beats.
        store, forward: beats of the results, raw to the one. A beat for both goes to each when that one takes it.
        idle: no operation is in here, and no beat.
        wait_net, wait_load, wait_room: a step wants a net beat; has that and wants a load beat; has both, and results
            are not taken.
    """

    LATENCY = 1 + Rounding.RANDOM_LATENCY + 2
    """Cycles from taking the beats of a step to its result on `store` and `forward`, without stalls."""

    RESULTS = 16
    """Beats of results, at least; more than the latency, so that nothing stops where they are taken at once."""

    def __init__(self, link_bytes: int):
        self.link_bytes = link_bytes
        beat = stream.Signature(8 * link_bytes)
        super().__init__(
            {
                "ops": In(stream.Signature(ReceiveOp)),
                "net": In(beat),
                "load": In(beat),
                "seed": In(32),
                "stream": In(32),
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
        bits, lanes = 8 * self.link_bytes, self.link_bytes // 4
        m.submodules.reducer = reducer = Reducer(self.link_bytes)
        m.submodules.rounding = rounding = Rounding(self.link_bytes)
        result = data.StructLayout({"beat": bits, "store": 1, "forward": 1})
        m.submodules.results = results = BufferedFifo(result, self.RESULTS)

        # The operation.
        coming, now = self.ops.payload, Signal(ReceiveOp, reset_less=True)
        active, takes, steps, last, ends = (Signal(name=n) for n in ("active", "takes", "steps", "last", "ends"))
        left = Signal(ELEMENTS_BITS, reset_less=True)
        first = Signal(32, reset_less=True)
        odd = Signal()
        beats = beats_of(m, "beats", coming.elements, coming.dtype, coming.net & coming.load, self.link_bytes)
        m.d.comb += [
            self.store_ops.valid.eq(self.ops.valid & coming.store & (~active | ends)),
            self.store_ops.payload.dtype.eq(coming.dtype),
            self.store_ops.payload.elements.eq(coming.elements),
            self.store_ops.payload.address.eq(coming.store_address),
            self.ops.ready.eq((~active | ends) & (~coming.store | self.store_ops.ready)),
            takes.eq(self.ops.valid & self.ops.ready),
        ]
        with m.If(takes):
            m.d.sync += [active.eq(1), now.eq(coming), left.eq(beats), first.eq(coming.first_element)]
        with m.Elif(ends):
            m.d.sync += active.eq(0)

        # A step.
        reduces, bf16, expands, room = (Signal(name=n) for n in ("reduces", "bf16", "expands", "room"))
        free = Signal(range(self.RESULTS + 1), init=self.RESULTS)
        control = Signal(_CONTROL)
        m.d.comb += [
            reduces.eq(now.net & now.load),
            bf16.eq(now.dtype == CollectiveType.BF16),
            expands.eq(reduces & bf16 & ~now.wide_in),
            room.eq(free != 0),
            self.wait_net.eq(active & now.net & ~self.net.valid),
            self.wait_load.eq(active & ~self.wait_net & now.load & ~self.load.valid),
            self.wait_room.eq(active & ~self.wait_net & ~self.wait_load & ~room),
            steps.eq(active & ~self.wait_net & ~self.wait_load & room),
            last.eq(left == 1),
            ends.eq(steps & last),
            self.net.ready.eq(steps & now.net & (~expands | odd | last)),
            self.load.ready.eq(steps & now.load),
            control.rounds.eq(reduces & bf16 & ~now.wide_out),
            control.odd.eq(odd),
            control.emits.eq(~control.rounds | odd | last),
            control.stochastic.eq(control.rounds & now.final & now.stochastic),
            control.store.eq(now.store),
            control.forward.eq(now.forward),
        ]
        with m.If(steps):
            m.d.sync += odd.eq(~odd & ~last)
            with m.If(~last):
                m.d.sync += [left.eq(left - 1), first.eq(first + lanes)]

        # Operands; what no step needs stays, so that the lanes are at rest.
        a, b = (Signal(bits, name=name, reset_less=True) for name in "ab")
        number = Signal(32, reset_less=True)
        half = Mux(odd, self.net.payload[bits // 2 :], self.net.payload[: bits // 2])
        with m.If(steps):
            m.d.sync += [
                a.eq(Mux(expands, _widened(half), Mux(now.net, self.net.payload, self.load.payload))),
                reducer.op.eq(now.op),
                reducer.integer.eq(now.dtype == CollectiveType.INT32),
                reducer.copy.eq(~reduces),
            ]
        with m.If(steps & reduces):
            m.d.sync += b.eq(self.load.payload)
        with m.If(steps & control.stochastic):
            m.d.sync += number.eq(first)
        m.d.comb += [reducer.a.eq(a), reducer.b.eq(b), rounding.first.eq(number)]
        m.d.comb += [rounding.seed.eq(self.seed), rounding.stream.eq(self.stream)]

        # Until the random words are there.
        value, word = reducer.out, control
        valid = Signal()
        m.d.sync += valid.eq(steps)
        for stage in range(rounding.RANDOM_LATENCY + 1):
            late = Signal(_CONTROL, name=f"control{stage}", reset_less=True)
            before = steps if stage == 0 else valid
            with m.If(before):
                m.d.sync += late.eq(word)
            word = late
            if stage == 0:
                continue
            late_valid = Signal(name=f"valid{stage}")
            m.d.sync += late_valid.eq(valid)
            if stage > reducer.LATENCY:
                late_value = Signal(bits, name=f"value{stage}", reset_less=True)
                with m.If(valid):
                    m.d.sync += late_value.eq(value)
                value = late_value
            valid = late_valid

        # Results.
        lower = Signal(bits // 2, reset_less=True)
        m.d.comb += [
            rounding.value.eq(value),
            rounding.stochastic.eq(word.stochastic),
            results.i.payload.beat.eq(
                Mux(
                    word.rounds,
                    Mux(word.odd, Cat(lower, rounding.out), Cat(rounding.out, Const(0, bits // 2))),
                    value,
                )
            ),
            results.i.valid.eq(valid & word.emits),
            results.i.payload.store.eq(word.store),
            results.i.payload.forward.eq(word.forward),
        ]
        with m.If(valid & word.rounds & ~word.odd):
            m.d.sync += lower.eq(rounding.out)
        self._deliver(m, results)
        m.d.sync += free.eq(free - (steps & control.emits) + results.o.ready)
        m.d.comb += self.idle.eq(~active & (free == self.RESULTS))
        return m

    def _deliver(self, m: Module, results: BufferedFifo) -> None:
        """Offer the first result to whom it is for, until each has taken it."""
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


def _widened(half: Mux) -> Cat:
    """Return half a beat of BF16 as a beat of FP32."""
    return Cat(*(Cat(Const(0, 16), half[n : n + 16]) for n in range(0, len(half), 16)))
