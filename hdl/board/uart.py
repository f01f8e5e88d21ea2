"""UART: one wire per direction, 8 data bits with the least significant first, no parity, one stop bit (8N1)."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["BITS", "UartReceiver", "UartTransmitter", "uart_divisor"]

BITS = 10
"""Bits of a byte on the wire, including start and stop bit."""

TOLERANCE = 0.02
"""Allowed relative error of the baud rate: half a bit in ten, shared by both ends, less the error of sampling."""


def uart_divisor(clock_hz: int, baud: int) -> int:
    """Return the number of clock cycles of a bit.

    Raises:
        ValueError: if no whole number of cycles, at least 4, is within `TOLERANCE` of the baud rate.
    """
    divisor = round(clock_hz / baud)
    if divisor < 4 or abs(clock_hz / divisor / baud - 1) > TOLERANCE:
        rule = f"within {TOLERANCE:.0%} of the clock ({clock_hz} Hz) divided by an integer of at least 4"
        raise ValueError(f"baud must be {rule}, not {baud!r}")
    return divisor


class UartReceiver(wiring.Component):
    """UART receiver; samples each bit once, in its middle.

    Arguments:
        divisor: clock cycles of a bit; at least 4.

    Ports:
        wire: asynchronous input; high while the line is idle.
        o: a received byte, valid for one cycle in the middle of its stop bit; there is no backpressure.
        broken: framing error instead of a byte: the stop bit was low. Further input is ignored until the wire is high.
    """

    STAGES = 2
    """Synchroniser registers between the wire and the receiver."""

    def __init__(self, divisor: int):
        self.divisor = divisor
        super().__init__({"wire": In(1, init=1), "o": Out(stream.Signature(8, always_ready=True)), "broken": Out(1)})

    def elaborate(self, platform):
        m = Module()
        level = Signal(init=1)
        m.submodules.synchroniser = FFSynchronizer(self.wire, level, init=1, stages=self.STAGES)
        countdown = Signal(range(self.divisor), reset_less=True)
        left = Signal(range(BITS), reset_less=True)  # bits after the current one
        byte = Signal(8, reset_less=True)
        sample = Signal()
        m.d.comb += [sample.eq(countdown == 0), self.o.payload.eq(byte)]
        m.d.sync += countdown.eq(countdown - 1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [countdown.eq(self.divisor // 2 - 1), left.eq(BITS - 1)]
                with m.If(~level):
                    m.next = "BITS"
            with m.State("BITS"):
                with m.If(sample):
                    m.d.sync += [countdown.eq(self.divisor - 1), left.eq(left - 1)]
                    with m.If((left == BITS - 1) & level):  # a glitch, not a start bit
                        m.next = "IDLE"
                    with m.Elif(left == 0):
                        m.d.comb += [self.o.valid.eq(level), self.broken.eq(~level)]
                        m.next = "RISE"
                    with m.Else():
                        m.d.sync += byte.eq(Cat(byte[1:], level))
            with m.State("RISE"):
                with m.If(level):
                    m.next = "IDLE"
        return m


class UartTransmitter(wiring.Component):
    """UART transmitter; sends bytes back to back.

    Arguments:
        divisor: clock cycles of a bit.

    Ports:
        i: a byte; accepted when the stop bit of the previous byte ends.
        wire: high while the line is idle.
    """

    def __init__(self, divisor: int):
        self.divisor = divisor
        super().__init__({"i": In(stream.Signature(8)), "wire": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        countdown = Signal(range(self.divisor), reset_less=True)
        left = Signal(range(BITS + 1))  # bits not yet sent completely
        rest = Signal(BITS - 1, reset_less=True)
        last_cycle = Signal()
        m.d.comb += [last_cycle.eq(countdown == 0), self.i.ready.eq((left == 0) | ((left == 1) & last_cycle))]
        m.d.sync += countdown.eq(countdown - 1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [self.wire.eq(0), rest.eq(Cat(self.i.payload, 1)), left.eq(BITS)]
            m.d.sync += countdown.eq(self.divisor - 1)
        with m.Elif((left != 0) & last_cycle):
            m.d.sync += [Cat(self.wire, rest).eq(Cat(rest, 1)), left.eq(left - 1), countdown.eq(self.divisor - 1)]
        return m
