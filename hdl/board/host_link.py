"""Host link: the board's end, which executes one command at a time (`spec.host_link`)."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.board.burst import BurstBuffer
from neuroncore_rtl.hdl.board.frame import WRITES, FrameHeader, FrameReceiver, FrameTransmitter
from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.spec.host_link import PAYLOAD_BYTES, SYNC, Answer, LinkCommand

__all__ = ["HostLink"]

WORD_BYTES = 4
"""Bytes of a register."""

_MEMORY = (LinkCommand.WRITE_MEMORY, LinkCommand.READ_MEMORY)


class HostLink(wiring.Component):
    """Host link: accesses memory and registers on commands from the UART.

    Arguments:
        size: bytes of a beat of the memory port.
        id_bits: width of the IDs of that port.
        patience: cycles without a byte after which the line is idle; gaps within a frame must be shorter.
        memory_patience: maximum number of cycles of a burst.

    Ports:
        i, broken, o: received bytes, framing errors, and bytes to send, from and to `hdl.board.uart`; at least four
            cycles apart.
        bus: bus to the registers.
        axi: port to memory.
        restart: memory is reset; after a timeout, bursts are allowed again.
    """

    def __init__(self, size: int, id_bits: int, patience: int, memory_patience: int = 1 << 16):
        self.size = size
        self.id_bits = id_bits
        self.patience = patience
        self.memory_patience = memory_patience
        super().__init__(
            {
                "i": In(stream.Signature(8, always_ready=True)),
                "broken": In(1),
                "o": Out(stream.Signature(8)),
                "bus": Out(Bus()),
                "axi": Out(AxiPort(size, id_bits)),
                "restart": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver(self.patience)
        m.submodules.transmitter = transmitter = FrameTransmitter()
        m.submodules.buffer = buffer = BurstBuffer(self.size, self.id_bits, self.memory_patience)
        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        wiring.connect(m, transmitter.o, wiring.flipped(self.o))
        wiring.connect(m, buffer.axi, wiring.flipped(self.axi))
        header = receiver.header
        word = Signal(8 * WORD_BYTES)  # value of the register that is read or written
        word_bytes = Array(word.word_select(place, 8) for place in range(WORD_BYTES))
        from_memory = header.code == LinkCommand.READ_MEMORY
        m.d.comb += [
            receiver.broken.eq(self.broken),
            buffer.write.eq(receiver.write),
            buffer.place.eq(receiver.place),
            buffer.byte.eq(receiver.byte),
            buffer.read_place.eq(transmitter.place),
            buffer.store.eq(header.code == LinkCommand.WRITE_MEMORY),
            buffer.address.eq(header.address),
            buffer.beats.eq(header.length >> (self.size.bit_length() - 1)),
            buffer.restart.eq(self.restart),
            self.bus.address.eq(header.address),
            self.bus.write.eq(header.code == LinkCommand.WRITE_REGISTER),
            self.bus.mask.eq(~0),
            self.bus.data.eq(word),
            transmitter.byte.eq(Mux(from_memory, buffer.read_byte, word_bytes[transmitter.place[:2]])),
        ]
        answer = Signal(8)
        m.d.comb += transmitter.header.eq(
            Cat(FrameHeader.const({"sync": SYNC}).as_value()[:8], answer, header.as_value()[16:])
        )
        m.d.comb += transmitter.has_payload.eq(
            (answer == Answer.DONE) & ~Cat(header.code == command for command in WRITES).any()
        )
        with m.If(receiver.write):
            with m.Switch(receiver.place):
                for place in range(WORD_BYTES):
                    with m.Case(place):
                        m.d.sync += word.word_select(place, 8).eq(receiver.byte)

        is_memory = Cat(header.code == command for command in _MEMORY).any()
        allowed = Signal()
        m.d.comb += allowed.eq(Mux(is_memory, self._is_burst(header), self._is_word(header)))
        known = Cat(header.code == command for command in LinkCommand).any()

        def conclude(what) -> None:
            m.d.sync += answer.eq(what)
            m.next = "ANSWER"

        with m.FSM():
            with m.State("RECEIVE"):
                with m.If(receiver.valid):
                    with m.If(receiver.refusal != 0):
                        conclude(receiver.refusal)
                    with m.Elif(~known):
                        conclude(Answer.UNKNOWN)
                    with m.Elif(~allowed):
                        conclude(Answer.REFUSED)
                    with m.Elif(is_memory):
                        m.next = "MEMORY"
                    with m.Else():
                        m.next = "ASK"
            with m.State("MEMORY"):
                m.d.comb += buffer.start.eq(1)
                with m.If(buffer.done):
                    conclude(Mux(buffer.failed, Answer.FAILED, Answer.DONE))
            with m.State("ASK"):
                m.d.comb += self.bus.valid.eq(1)
                with m.If(self.bus.ready):
                    m.next = "REGISTER"
            with m.State("REGISTER"):
                with m.If(self.bus.response):
                    m.d.sync += word.eq(self.bus.result)
                    conclude(Mux(self.bus.error, Answer.REFUSED, Answer.DONE))
            with m.State("ANSWER"):
                m.d.comb += transmitter.valid.eq(1)
                with m.If(transmitter.done):
                    m.d.comb += receiver.taken.eq(1)
                    m.next = "RECEIVE"
        return m

    def _is_burst(self, header) -> Signal:
        """Return whether a memory access is legal: whole beats, at least one, in one block of PAYLOAD_BYTES."""
        beat, block = self.size - 1, PAYLOAD_BYTES - 1
        aligned = ((header.address | header.length) & beat) == 0
        return aligned & (header.length != 0) & ((header.address & block) + header.length <= PAYLOAD_BYTES)

    def _is_word(self, header) -> Signal:
        return (header.length == WORD_BYTES) & (header.address[:2] == 0)
