"""Instruction fetch unit with a prefetch queue."""

from itertools import pairwise

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.spec.memory_map import LOCAL_BASE

__all__ = ["ControllerFetch"]


class ControllerFetch(wiring.Component):
    """Instruction fetch unit: delivers the words from a pc on, in order, until it is redirected.

    The pipeline can consume a word in the cycle of its response; otherwise the word is stored in a queue of `depth`
    entries. A redirection empties the queue and requests its target in the same cycle. Outstanding requests are still
    answered, as the bus requires, and their words are dropped.

    With a memory that answers in the next cycle, the target is delivered one cycle after the redirection, or `latency`
    cycles later; then one word per cycle follows.

    Arguments:
        latency: 1: every word stays in the queue for a cycle, because block RAM answers late in its cycle; 0: no such
            delay.

    Ports:
        bus: reads of whole words.
        valid, pc, instruction: the next instruction word, its address, and whether it is present.
        error: the fetch of that word failed; `instruction` is undefined.
        take: the pipeline consumes the word at the end of this cycle.
        redirect, target: continue at `target`, a multiple of 4; `take` is ignored in that cycle.
    """

    bus: Out(Bus())
    valid: Out(1)
    pc: Out(32, init=LOCAL_BASE)
    instruction: Out(32)
    error: Out(1)
    take: In(1)
    redirect: In(1)
    target: In(32)

    def __init__(self, latency: int = 0):
        self.latency = latency
        self.depth = 2 + latency
        """Maximum number of words requested and not consumed; enough for one word per cycle if `latency` is 1."""
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        running = Signal()
        m.d.sync += running.eq(1)

        # Requests: a request that was not accepted is repeated, even after a redirection.
        next_address, address = Signal(32, init=LOCAL_BASE), Signal(32)
        repeated, repeated_address = Signal(), Signal(32, reset_less=True)
        asks = Signal()
        in_flight, stale, waiting = (
            Signal(range(self.depth + 1), name=name) for name in ("in_flight", "stale", "waiting")
        )
        m.d.comb += [
            address.eq(Mux(self.redirect, self.target, next_address)),
            asks.eq(running & ~repeated & (in_flight + Mux(self.redirect, 0, waiting) < self.depth)),
            self.bus.valid.eq(asks | repeated),
            self.bus.address.eq(Mux(repeated, repeated_address, address)),
            self.bus.mask.eq(0b1111),
        ]
        m.d.sync += [
            next_address.eq(Mux(asks, address + 4, address)),
            repeated.eq(self.bus.valid & ~self.bus.ready),
            repeated_address.eq(self.bus.address),
        ]

        # Responses: stale responses, which were requested before the last redirection, are the oldest.
        arrives = Signal()
        in_flight_left = Signal.like(in_flight)
        m.d.comb += [
            arrives.eq(self.bus.response & ~stale.any()),
            in_flight_left.eq(in_flight - self.bus.response),
        ]
        m.d.sync += in_flight.eq(in_flight_left + asks)
        with m.If(self.redirect):
            m.d.sync += stale.eq(in_flight_left)
        with m.Elif(self.bus.response & stale.any()):
            m.d.sync += stale.eq(stale - 1)

        # Queue: word 0 is the head; an arriving word bypasses an empty queue.
        words = [Signal(33, name=f"word_{place}", reset_less=True) for place in range(self.depth)]
        arrived, head = Signal(33), Signal(33)
        place = Signal(range(self.depth + 1))
        goes_past = Const(0) if self.latency else ~waiting.any()
        m.d.comb += [
            arrived.eq(Cat(self.bus.result, self.bus.error)),
            head.eq(Mux(goes_past, arrived, words[0])),
            Cat(self.instruction, self.error).eq(head),
            self.valid.eq(waiting.any() | (goes_past & arrives)),
            place.eq(waiting - (self.take & ~goes_past)),
        ]
        with m.If(self.take):
            m.d.sync += [word.eq(following) for word, following in pairwise(words)]
            m.d.sync += self.pc.eq(self.pc + 4)
        with m.If(arrives):
            for number, word in enumerate(words):
                with m.If(place == number):
                    m.d.sync += word.eq(arrived)
        m.d.sync += waiting.eq(waiting + arrives - self.take)
        with m.If(self.redirect):
            m.d.sync += [self.pc.eq(self.target), waiting.eq(0)]
        return m
