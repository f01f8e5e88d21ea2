"""Window of the controller to SBUF and PSUM: on-chip words in the controller's address space."""

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, PARTITION_BITS, LineRead, LineWrite, OnChipStorage
from neuroncore_rtl.hdl.queue.subordinate import hold_request
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.access import storage_bytes, storage_partitions
from neuroncore_rtl.spec.memory_map import PSUM_PITCH_BITS, PSUM_WINDOW, SBUF_PITCH_BITS, SBUF_WINDOW

__all__ = ["Window"]

_WINDOW_BITS = 28
"""Address bits within a window; the bits above select the window."""

_WORD_BITS = 2
"""Address bits within a word."""


class Window(wiring.Component):
    """Window of the controller to SBUF and PSUM, one access at a time.

    A write is answered when the memory holds it, a read `LineRead.LATENCY` cycles after its request. With
    `config.port_latency`, requests are sent that many cycles later, and the answer to a write is as late again.

    An access is refused with an error if it is not of a whole word, or if the partition or the byte does not exist.

    Arguments:
        config: the machine's parameters.

    Ports:
        bus: the controller's bus.
        read, write: ports of the on-chip memories.
        written: the memory holds all accepted writes at the end of this cycle.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "bus": In(Bus()),
                "read": Out(LineRead(config.hbm_bytes, config.port_latency)),
                "write": Out(LineWrite(config.hbm_bytes)),
                "written": In(1, init=1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answered = Signal()
        request = hold_request(m, self.bus, answered)
        access, exists = self._place(m, request, answered)
        word_index = request.address[_WORD_BITS : self.config.hbm_bytes.bit_length() - 1]
        given, written = Signal(), self.written  # the write was accepted; all accepted writes are in the memory
        # Shift register: a bit enters when a read is accepted and reaches the end with its data.
        arriving = Signal(self.read.signature.latency)
        m.d.comb += [
            self.write.data.eq(request.data.replicate(self.config.hbm_bytes >> _WORD_BITS)),
            self.write.mask.eq(Const(0xF, self.config.hbm_bytes) << (word_index << _WORD_BITS)),
            self.read.word.eq(word_index),
        ]
        with m.Switch(word_index):
            for index in range(self.config.hbm_bytes >> _WORD_BITS):
                with m.Case(index):
                    m.d.comb += self.bus.result.eq(self.read.data.word_select(index, 32))
        m.d.sync += arriving.eq(Cat(self.read.valid & self.read.ready, arriving))
        taken = given | self.write.ready
        if self.config.port_latency:
            written = Signal(init=1)
            m.d.sync += written.eq(self.written)
            taken = given
        with m.If(access):
            with m.If(~exists):
                m.d.comb += [answered.eq(1), self.bus.error.eq(1)]
            with m.Elif(request.write):
                m.d.comb += [self.write.valid.eq(~given), answered.eq(taken & written)]
                m.d.sync += given.eq((given | self.write.ready) & ~answered)
            with m.Else():
                m.d.comb += [self.read.valid.eq(~arriving.any()), answered.eq(arriving[-1])]
        return m

    def _place(self, m: Module, request, answered: Signal) -> tuple[Value, Value]:
        known = {"exists": 1, "storage": OnChipStorage, "partition": PARTITION_BITS, "address": ADDRESS_BITS}
        place = Signal(data.StructLayout(known))
        for storage, window, pitch in (
            (OnChipStorage.SBUF, SBUF_WINDOW, SBUF_PITCH_BITS),
            (OnChipStorage.PSUM, PSUM_WINDOW, PSUM_PITCH_BITS),
        ):
            kind = isa.Storage(storage.value)
            partition, byte = request.address[pitch:_WINDOW_BITS], request.address[:pitch]
            with m.If(request.address[_WINDOW_BITS:] == window >> _WINDOW_BITS):
                m.d.comb += [
                    place.exists.eq(
                        (partition < storage_partitions(kind, self.config))
                        & (byte < storage_bytes(kind, self.config))
                        & request.mask.all()
                    ),
                    place.storage.eq(storage),
                    place.partition.eq(partition),
                    place.address.eq(byte & -self.config.hbm_bytes),
                ]
        access = request.valid
        if self.config.port_latency:
            access, early_place = Signal(), place
            place = Signal.like(early_place, name="late_place")
            m.d.sync += [access.eq(request.valid & ~answered), place.eq(early_place)]
        for port in (self.read, self.write):
            m.d.comb += [
                port.storage.eq(place.storage),
                port.partition.eq(place.partition),
                port.address.eq(place.address),
            ]
        return access, place.exists
