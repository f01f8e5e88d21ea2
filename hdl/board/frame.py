"""Frame receiver and transmitter of the host link (`spec.host_link`)."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import crc, data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.host_link import (
    CHECK_BYTES,
    FRAME_HEADER_BYTES,
    HEADER,
    PAYLOAD_BYTES,
    SYNC,
    Answer,
    LinkCommand,
)

__all__ = ["WRITES", "FrameHeader", "FrameReceiver", "FrameTransmitter", "check_processor"]

FrameHeader = data.StructLayout({name: 8 * size for name, size in HEADER})
"""Header of a frame. Fields are in the order of transmission, each least significant byte first."""

WRITES = (LinkCommand.WRITE_MEMORY, LinkCommand.WRITE_REGISTER)
"""Commands whose frames have a payload."""

PLACES = PAYLOAD_BYTES.bit_length() - 1
"""Width of a byte's offset in a payload."""


def check_processor() -> crc.Processor:
    """Return the CRC unit of frames, which processes one byte per step."""
    return crc.catalog.CRC32_ETHERNET(data_width=8).create()


class FrameReceiver(wiring.Component):
    """Frame receiver: extracts commands from received bytes and reports anything else as an error.

    Arguments:
        patience: cycles without a byte after which the line is idle. An idle line ends an incomplete frame, and ends a
            run of bytes outside a frame.

    Ports:
        i, broken: received bytes, and pulses for framing errors; see `hdl.board.uart.UartReceiver`.
        write, place, byte: a byte of the payload and its offset. The frame's CRC is checked later, so the frame may
            still be invalid.
        valid: the result is ready: a command if `refusal` is 0, otherwise an error.
        header: header of the command.
        refusal: 0 for a valid command, else the `Answer` that reports the error.
        taken: accepts the result, only while `valid`. Bytes received before this are lost.
    """

    def __init__(self, patience: int):
        self.patience = patience
        super().__init__(
            {
                "i": In(stream.Signature(8, always_ready=True)),
                "broken": In(1),
                "write": Out(1),
                "place": Out(PLACES),
                "byte": Out(8),
                "valid": Out(1),
                "header": Out(FrameHeader),
                "refusal": Out(8),
                "taken": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.check = check = check_processor()
        count = Signal(range(PAYLOAD_BYTES), reset_less=True)  # received bytes of this part of the frame
        idle = Signal(range(self.patience + 1))  # cycles without a byte
        happens, quiet, has_payload = Signal(), Signal(), Signal()
        m.d.comb += [
            happens.eq(self.i.valid | self.broken),
            quiet.eq(idle == self.patience),
            has_payload.eq(Cat(self.header.code == command for command in WRITES).any()),
            check.valid.eq(self.i.valid),
            check.data.eq(self.i.payload),
            self.place.eq(count),
            self.byte.eq(self.i.payload),
        ]
        m.d.sync += idle.eq(Mux(happens, 0, Mux(quiet, idle, idle + 1)))

        def refuse(answer: Answer) -> None:
            m.d.sync += self.refusal.eq(answer)
            m.next = "NOISE"

        def within(part) -> None:
            """Add to a state its transitions on errors, and `part`: the statements that process the received bytes."""
            with m.If(self.broken):
                refuse(Answer.CORRUPTED)
            with m.Elif(self.i.valid):
                part()
            with m.Elif(quiet):
                refuse(Answer.TRUNCATED)

        def header_byte() -> None:
            header = self.header.as_value()
            m.d.sync += [header.eq(Cat(header[8:], self.i.payload)), count.eq(count + 1)]
            with m.If(count == FRAME_HEADER_BYTES - 1):
                m.next = "LENGTH"

        def payload_byte() -> None:
            m.d.comb += self.write.eq(1)
            m.d.sync += count.eq(count + 1)
            with m.If(count + 1 == self.header.length):
                m.d.sync += count.eq(0)
                m.next = "CHECK"

        def check_byte() -> None:
            m.d.sync += count.eq(count + 1)
            with m.If(count == CHECK_BYTES - 1):
                m.next = "VERDICT"

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [count.eq(1), self.refusal.eq(0)]
                m.d.comb += check.start.eq(1)
                with m.If(self.i.valid & (self.i.payload == SYNC)):
                    m.d.sync += self.header.eq(Cat(self.header.as_value()[8:], self.i.payload))
                    m.next = "HEADER"
                with m.Elif(happens):
                    refuse(Answer.CORRUPTED)
            with m.State("HEADER"):
                within(header_byte)
            with m.State("LENGTH"):  # one cycle; bytes are further apart
                m.d.sync += count.eq(0)
                m.next = "CHECK"
                with m.If(
                    has_payload & (self.header.length > PAYLOAD_BYTES)
                ):  # no sender uses this length: the frame is corrupted
                    refuse(Answer.CORRUPTED)
                with m.Elif(has_payload & (self.header.length != 0)):
                    m.next = "PAYLOAD"
            with m.State("PAYLOAD"):
                within(payload_byte)
            with m.State("CHECK"):
                within(check_byte)
            with m.State("VERDICT"):
                m.next = "VALID"
                with m.If(~check.match_detected):
                    refuse(Answer.CORRUPTED)
            with m.State("NOISE"):
                with m.If(quiet & ~happens):
                    m.next = "VALID"
            with m.State("VALID"):
                m.d.comb += self.valid.eq(1)
                with m.If(self.taken):
                    m.next = "IDLE"
        return m


class FrameTransmitter(wiring.Component):
    """Frame transmitter: converts an answer to bytes.

    Ports:
        valid, header, has_payload: an answer, with `header.length` (at least 1) bytes of payload if `has_payload`; held
            until `done`.
        done: the last byte of the answer is accepted in this cycle.
        place: offset of the next byte of the payload.
        byte: the byte at that offset, valid at most two cycles after `place`.
        o: bytes of the frame, at most one in four cycles.
    """

    def __init__(self):
        super().__init__(
            {
                "valid": In(1),
                "header": In(FrameHeader),
                "has_payload": In(1),
                "done": Out(1),
                "place": Out(PLACES),
                "byte": In(8),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.check = check = check_processor()
        count = Signal(range(PAYLOAD_BYTES), reset_less=True)
        pause = Signal(2)  # remaining cycles until the payload's byte and the CRC of the sent bytes are valid
        header, checks = (
            Array(value[start : start + 8] for start in range(0, len(value), 8))
            for value in (self.header.as_value(), check.crc)
        )
        passes = Signal()
        m.d.comb += [
            self.place.eq(count),
            passes.eq(self.o.valid & self.o.ready),
            check.data.eq(self.o.payload),
        ]
        with m.If(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        with m.If(passes):
            m.d.sync += [count.eq(count + 1), pause.eq(3)]

        def send(byte, last, then: str, checked: bool = True) -> None:
            m.d.comb += [self.o.valid.eq(pause == 0), self.o.payload.eq(byte), check.valid.eq(passes & checked)]
            with m.If(passes & last):
                m.d.sync += count.eq(0)
                m.next = then

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += count.eq(0)
                m.d.comb += check.start.eq(1)
                with m.If(self.valid):
                    m.next = "HEADER"
            with m.State("HEADER"):
                send(header[count[: (FRAME_HEADER_BYTES - 1).bit_length()]], count == FRAME_HEADER_BYTES - 1, "CHECK")
                with m.If(passes & (count == FRAME_HEADER_BYTES - 1) & self.has_payload):
                    m.next = "PAYLOAD"
            with m.State("PAYLOAD"):
                send(self.byte, count + 1 == self.header.length, "CHECK")
            with m.State("CHECK"):
                last = count == CHECK_BYTES - 1
                send(checks[count[:2]], last, "IDLE", checked=False)
                m.d.comb += self.done.eq(passes & last)
        return m
