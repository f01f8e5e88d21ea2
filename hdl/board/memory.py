"""Board memory: AXI4 bursts to SDRAM words."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.board.sdram import sdram_words
from neuroncore_rtl.hdl.board.sdram_chip import SdramChip
from neuroncore_rtl.hdl.memory.axi import PAGE_BYTES, RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["BeatSplitter", "BurstServer", "memory_beats"]

RESPONSE_DECERR = 3
"""AXI response for an address beyond the end of memory."""


def memory_beats(size: int) -> data.StructLayout:
    """Return the layout of a beat of `size` bytes: its address, a multiple of `size`, and the fields of AXI's W."""
    return data.StructLayout({"address": HBM_ADDRESS_BITS, "write": 1, "data": 8 * size, "strb": size})


class BurstServer(wiring.Component):
    """AXI subordinate for several managers: serves one burst at a time, round robin.

    A write competes only once its first beat is valid, so that a slow manager does not block the others. Addresses
    beyond the end of memory are answered with DECERR.

    Arguments:
        size: bytes of a beat.
        id_bits: width of the managers' IDs, which are returned unchanged.
        count: number of managers.
        memory_bytes: size of memory, from address 0; a power of two.

    Ports:
        managers: ports of the managers.
        beats: beats to write or read, one by one, in the order of execution.
        answers: data of the read beats, in the order of the reads in `beats`.
    """

    def __init__(self, size: int, id_bits: int, count: int, memory_bytes: int):
        self.size = size
        self.id_bits = id_bits
        self.count = count
        self.memory_bytes = memory_bytes
        super().__init__(
            {
                "managers": In(AxiPort(size, id_bits)).array(count),
                "beats": Out(stream.Signature(memory_beats(size))),
                "answers": In(stream.Signature(8 * size)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.turn = turn = RoundRobin(2 * self.count)  # requesters: reads of all managers, then writes
        number = Signal(range(max(2, self.count)))  # index of the current manager
        address = Signal(HBM_ADDRESS_BITS, reset_less=True)  # address of the next beat
        to_ask = Signal(9, reset_less=True)  # beats not yet requested from memory
        to_come = Signal(8, reset_less=True)  # beats not yet transferred, minus one
        identity = Signal(self.id_bits, reset_less=True)
        exists = Signal()
        page_bits = PAGE_BYTES.bit_length() - 1  # a burst stays within a page
        m.d.comb += [
            turn.requests.eq(
                Cat(*(one.ar.valid for one in self.managers), *(one.aw.valid & one.w.valid for one in self.managers))
            ),
            exists.eq(address[(self.memory_bytes - 1).bit_length() :] == 0),
            self.beats.payload.address.eq(address),
        ]

        # Channels of the current manager.
        r_valid, r_ready, r_last, w_valid, w_ready, b_valid, b_ready = (
            Signal(name=name) for name in ("r_valid", "r_ready", "r_last", "w_valid", "w_ready", "b_valid", "b_ready")
        )
        with m.Switch(number):
            for place, one in enumerate(self.managers):
                with m.Case(place):
                    m.d.comb += [
                        *(one.r.valid.eq(r_valid), r_ready.eq(one.r.ready), one.b.valid.eq(b_valid)),
                        *(b_ready.eq(one.b.ready), w_valid.eq(one.w.valid), one.w.ready.eq(w_ready)),
                        *(self.beats.payload[name].eq(one.w.payload[name]) for name in ("data", "strb")),
                    ]
        response = Mux(exists, RESPONSE_OKAY, RESPONSE_DECERR)
        for one in self.managers:
            m.d.comb += [
                # Zero for DECERR: the data must not change during a stall.
                *(one.r.payload.data.eq(Mux(exists, self.answers.payload, 0)), one.r.payload.last.eq(r_last)),
                *(one.r.payload.id.eq(identity), one.b.payload.id.eq(identity)),
                *(one.r.payload.resp.eq(response), one.b.payload.resp.eq(response)),
            ]

        with m.FSM():
            with m.State("CHOOSE"):
                m.d.comb += turn.taken.eq(turn.requests.any())
                channels = [one.ar for one in self.managers] + [one.aw for one in self.managers]
                with m.Switch(turn.grant):
                    for place, channel in enumerate(channels):
                        with m.Case(place), m.If(turn.requests[place]):
                            asks = channel.payload
                            m.d.comb += channel.ready.eq(1)
                            m.d.sync += [address.eq(asks.addr), identity.eq(asks.id), number.eq(place % self.count)]
                            m.d.sync += [to_ask.eq(asks.len + 1), to_come.eq(asks.len)]
                            m.next = "READ" if place < self.count else "WRITE"
            with m.State("READ"):
                m.d.comb += [
                    self.beats.valid.eq(exists & (to_ask != 0)),
                    r_valid.eq(~exists | self.answers.valid),
                    r_last.eq(to_come == 0),
                    self.answers.ready.eq(exists & r_ready),
                ]
                with m.If(self.beats.valid & self.beats.ready):
                    m.d.sync += [address[:page_bits].eq(address + self.size), to_ask.eq(to_ask - 1)]
                with m.If(r_valid & r_ready):
                    m.d.sync += to_come.eq(to_come - 1)
                    with m.If(to_come == 0):
                        m.next = "CHOOSE"
            with m.State("WRITE"):
                m.d.comb += [
                    self.beats.payload.write.eq(1),
                    self.beats.valid.eq(exists & w_valid),
                    w_ready.eq(self.beats.ready | ~exists),
                ]
                with m.If(w_valid & w_ready):
                    m.d.sync += [address[:page_bits].eq(address + self.size), to_come.eq(to_come - 1)]
                    with m.If(to_come == 0):
                        m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += b_valid.eq(1)
                with m.If(b_ready):
                    m.next = "CHOOSE"
        return m


class BeatSplitter(wiring.Component):
    """Splits beats into words and assembles words into beats, without idle cycles between beats.

    Arguments:
        size: bytes of a beat; at least two words of the chip.
        chip: the SDRAM chip.
        depth: maximum number of read beats that are requested and not yet accepted at `answers`.

    Ports:
        beats, answers: see `BurstServer`.
        words, read: see `hdl.board.sdram.SdramController`.
    """

    def __init__(self, size: int, chip: SdramChip, depth: int = 4):
        self.size = size
        self.chip = chip
        self.depth = depth
        super().__init__(
            {
                "beats": In(stream.Signature(memory_beats(size))),
                "answers": Out(stream.Signature(8 * size)),
                "words": Out(stream.Signature(sdram_words(chip))),
                "read": In(stream.Signature(chip.width, always_ready=True)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bytes_of_word = self.chip.width // 8
        count = self.size // bytes_of_word
        m.submodules.fifo = fifo = Fifo(8 * self.size, self.depth)
        wiring.connect(m, fifo.o, wiring.flipped(self.answers))
        beat = Signal(memory_beats(self.size), reset_less=True)
        busy = Signal()
        place, arrived = Signal(range(count)), Signal(range(count))
        ahead = Signal(range(self.depth + 1))  # read beats requested and not consumed
        parts = Signal(8 * self.size - self.chip.width, reset_less=True)  # received words of the arriving beat
        given, last, room = Signal(), Signal(), Signal()
        first = beat.address[bytes_of_word.bit_length() - 1 :][: self.chip.word_bits]
        m.d.comb += [
            given.eq(self.words.valid & self.words.ready),
            last.eq(place == count - 1),
            room.eq(ahead != self.depth),
            self.beats.ready.eq((~busy | (given & last)) & (self.beats.payload.write | room)),
            self.words.valid.eq(busy),
            self.words.payload.number.eq(first | place),
            self.words.payload.write.eq(beat.write),
            self.words.payload.data.eq(beat.data[: self.chip.width]),
            self.words.payload.mask.eq(beat.strb[:bytes_of_word]),
            fifo.i.payload.eq(Cat(parts, self.read.payload)),
            fifo.i.valid.eq(self.read.valid & (arrived == count - 1)),
        ]
        with m.If(given):
            m.d.sync += [place.eq(place + 1), busy.eq(~last)]
            m.d.sync += [beat.data.eq(beat.data[self.chip.width :]), beat.strb.eq(beat.strb[bytes_of_word:])]
        taken = self.beats.valid & self.beats.ready
        with m.If(taken):
            m.d.sync += [beat.eq(self.beats.payload), busy.eq(1)]
        with m.If(self.read.valid):
            m.d.sync += [arrived.eq(arrived + 1), parts.eq(Cat(parts, self.read.payload)[self.chip.width :])]
        left = self.answers.valid & self.answers.ready
        m.d.sync += ahead.eq(ahead + (taken & ~self.beats.payload.write) - left)
        return m
