"""Load/store unit: any alignment, on a bus of aligned words."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus

__all__ = ["MemoryAccess"]


class _Part(enum.Enum, shape=2):
    """State of an access.

    FIRST: the first word is requested. PAUSE: its response is outstanding. SECOND: the second word is requested.
    REFUSED: the first response was an error.
    """

    FIRST = 0
    PAUSE = 1
    SECOND = 2
    REFUSED = 3


class MemoryAccess(wiring.Component):
    """Load/store unit: one request per access, or two in address order if the access crosses a word boundary.

    The second request is issued only after the first was answered without an error. A store with a refused second word
    has already written the first.

    Ports:
        bus: bus of aligned words; at most one request is outstanding.
        valid: a load or store is executing, and all older instructions have ended; held with its operands until `done`.
        store, funct3: fields of the instruction.
        address: byte address, of any alignment.
        data: value to store.
        misaligned: the address is not a multiple of the size. The processor refuses an access by not setting `valid`.
        done: the last request is accepted in this cycle and its response follows; or `refused`.
        refused: the first of two words was answered with an error; the access is over.
        fault_address: address of the refused part of the access, if the last request is, or was, answered with an
            error.
        loaded: the loaded value, extended to 32 bits, in the cycle of the last response.
    """

    bus: Out(Bus())
    valid: In(1)
    store: In(1)
    funct3: In(3)
    address: In(32)
    data: In(32)
    misaligned: Out(1)
    done: Out(1)
    refused: Out(1)
    fault_address: Out(32)
    loaded: Out(32)

    def elaborate(self, platform):
        m = Module()
        part = Signal(_Part)
        offset, second = self.address[:2], Signal()
        lanes, split = Signal(8), Signal()
        above = Signal(30, reset_less=True)
        m.d.comb += second.eq(part == _Part.SECOND)
        with m.Switch(self.funct3[:2]):
            with m.Case(0):
                m.d.comb += lanes.eq(Const(0b0001, 4) << offset)
            with m.Case(1):
                m.d.comb += [lanes.eq(Const(0b0011, 4) << offset), self.misaligned.eq(offset[0])]
            with m.Default():
                m.d.comb += [lanes.eq(Const(0b1111, 4) << offset), self.misaligned.eq(offset.any())]
        m.d.comb += [
            split.eq(lanes[4:].any()),
            self.bus.valid.eq(self.valid & ((part == _Part.FIRST) | second)),
            self.bus.address.eq(Cat(Const(0, 2), Mux(second, above, self.address[2:]))),
            self.bus.write.eq(self.store),
            self.bus.mask.eq(Mux(second, lanes[4:], lanes[:4])),
            self.fault_address.eq(Mux(second, self.bus.address, self.address)),
            self.refused.eq(part == _Part.REFUSED),
            self.done.eq((self.bus.valid & self.bus.ready & (second | ~split)) | self.refused),
        ]
        # The data is rotated: bytes shifted out at the top of the word are the low bytes of the next word.
        with m.Switch(offset):
            for rotation in range(4):
                with m.Case(rotation):
                    m.d.comb += self.bus.data.eq(self.data.rotate_left(8 * rotation))

        with m.If(self.valid):
            with m.Switch(part):
                with m.Case(_Part.FIRST):
                    m.d.sync += above.eq(self.address[2:] + 1)
                    with m.If(self.bus.ready & split):
                        m.d.sync += part.eq(_Part.PAUSE)
                with m.Case(_Part.PAUSE):
                    with m.If(self.bus.response):
                        m.d.sync += part.eq(Mux(self.bus.error, _Part.REFUSED, _Part.SECOND))
                with m.Default():
                    with m.If(self.done):
                        m.d.sync += part.eq(_Part.FIRST)

        self._load(m, offset, second)
        return m

    def _load(self, m: Module, offset, second):
        """Assemble the loaded value.

        The next instruction is already in the execute stage, so the control is registered.
        """
        late_offset, late_second = Signal(2, reset_less=True), Signal(reset_less=True)
        size, zero_extend = Signal(2, reset_less=True), Signal(reset_less=True)
        first = Signal(32, reset_less=True)
        with m.If(self.bus.valid & self.bus.ready):
            m.d.sync += [late_offset.eq(offset), late_second.eq(second)]
            m.d.sync += [size.eq(self.funct3[:2]), zero_extend.eq(self.funct3[2])]
        with m.If(self.bus.response):
            m.d.sync += first.eq(self.bus.result)

        lower, word = Signal(32), Signal(32)
        m.d.comb += lower.eq(Mux(late_second, first, self.bus.result))
        with m.Switch(late_offset):
            for rotation in range(4):
                with m.Case(rotation):
                    m.d.comb += word.eq(Cat(lower, self.bus.result)[8 * rotation : 8 * rotation + 32])
        with m.Switch(size):
            with m.Case(0):
                m.d.comb += self.loaded.eq(Cat(word[:8], (word[7] & ~zero_extend).replicate(24)))
            with m.Case(1):
                m.d.comb += self.loaded.eq(Cat(word[:16], (word[15] & ~zero_extend).replicate(16)))
            with m.Default():
                m.d.comb += self.loaded.eq(word)
        return m
