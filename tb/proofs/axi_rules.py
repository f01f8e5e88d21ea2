"""Rules of AXI4 and AXI4-Lite (ARM IHI 0022) for a port, to assert or assume for its manager and subordinate."""

from collections.abc import Callable

from amaranth.hdl import Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data

from neuroncore_rtl.hdl.memory.axi import MAX_BEATS, PAGE_BYTES
from neuroncore_rtl.tb.proofs.proof import stream_stays

__all__ = ["LONGEST", "AxiRules"]

LONGEST = 16
"""Cycles of the longest proof, and bursts that `AxiRules` can record."""

Check = Callable[[ValueLike], object]


class AxiRules:
    """Record of all bursts of a port, and the rules of AXI for them.

    Arguments:
        m: the module.
        name: prefix of the added signals.
        port: `hdl.memory.axi.AxiPort`, or AXI4-Lite as bursts of one beat with ID 0.
        size: bytes per beat.
    """

    def __init__(self, m: Module, name: str, port, size: int):
        self.m, self.name, self.port, self.size = m, name, port, size
        self.identities = range(1 << len(_field(port.ar, "id", 0)) if "id" in _fields(port.ar) else 1)
        self._watch_reads()
        self._watch_writes()

    def manager(self, check: Check) -> None:
        """Check the rules of a manager.

        1. A valid payload stays until accepted.
        2. Bursts are aligned, at most MAX_BEATS long, and do not cross a page of 4 KiB.
        3. A write has the number of beats that its address states, also if its data precede the address.
        """
        m, port = self.m, self.port
        for channel in (port.aw, port.ar, port.w):
            stream_stays(m, channel, check)
        for channel in (port.aw, port.ar):
            if "len" in _fields(channel):
                address, length = channel.payload.addr, channel.payload.len
                end = (address % PAGE_BYTES) + ((length + 1) * self.size)
                with m.If(channel.valid):
                    m.d.comb += [check(end <= PAGE_BYTES), check(address % self.size == 0), check(length < MAX_BEATS)]
        if "last" in _fields(port.w):
            with m.If(port.w.valid & (self.writes > self.written)):
                m.d.comb += check(port.w.payload.last == (self.beats == self.write_lengths[self.written]))
            with m.If(port.aw.valid & (self.writes < self.written)):
                m.d.comb += check(port.aw.payload.len == self.write_beats[self.writes])
            with m.If(port.aw.valid & (self.writes == self.written)):
                m.d.comb += check(port.aw.payload.len >= self.beats)
                with m.If(port.w.valid):
                    m.d.comb += check(port.w.payload.last == (self.beats == port.aw.payload.len))

    def subordinate(self, check: Check) -> None:
        """Check the rules of a subordinate.

        1. A valid payload stays until accepted.
        2. Responses match outstanding bursts, in order within an ID; a read has the requested number of beats.
        3. A write is answered after its address and all of its beats.
        """
        m, port = self.m, self.port
        for channel in (port.b, port.r):
            stream_stays(m, channel, check)
        for identity in self.identities:
            reads, answered, beats, lengths = self.reads[identity]
            with m.If(port.r.valid & (_field(port.r, "id", 0) == identity)):
                m.d.comb += [check(answered < reads), check(_field(port.r, "last", 1) == (beats == lengths[answered]))]
            with m.If(port.b.valid & (_field(port.b, "id", 0) == identity)):
                m.d.comb += check(self.answered[identity] < self._due(identity))

    def _signal(self, shape, what: str) -> Signal:
        return Signal(shape, name=f"{self.name}_{what}")

    def _watch_reads(self) -> None:
        m, port, self.reads = self.m, self.port, []
        for identity in self.identities:
            reads, answered = (self._signal(range(LONGEST + 1), f"{what}{identity}") for what in ("reads", "answered"))
            beats = self._signal(8, f"read_beats{identity}")
            lengths = self._signal(data.ArrayLayout(8, LONGEST), f"read_lengths{identity}")
            with m.If(_moves(port.ar) & (_field(port.ar, "id", 0) == identity)):
                m.d.sync += [reads.eq(reads + 1), lengths[reads].eq(_field(port.ar, "len", 0))]
            with m.If(_moves(port.r) & (_field(port.r, "id", 0) == identity)):
                last = _field(port.r, "last", 1)
                m.d.sync += [answered.eq(answered + last), beats.eq(Mux(last, 0, beats + 1))]
            self.reads.append((reads, answered, beats, lengths))

    def _watch_writes(self) -> None:
        m, port = self.m, self.port
        self.writes, self.written = (self._signal(range(LONGEST + 1), what) for what in ("writes", "written"))
        self.beats = self._signal(8, "beats")
        self.write_lengths, self.write_beats = (
            self._signal(data.ArrayLayout(8, LONGEST), what) for what in ("write_lengths", "write_beats")
        )
        self.owners = self._signal(data.ArrayLayout(8, LONGEST), "owners")
        self.answered = [self._signal(range(LONGEST + 1), f"write_answers{n}") for n in self.identities]
        with m.If(_moves(port.aw)):
            m.d.sync += [
                self.writes.eq(self.writes + 1),
                self.owners[self.writes].eq(_field(port.aw, "id", 0)),
                self.write_lengths[self.writes].eq(_field(port.aw, "len", 0)),
            ]
        with m.If(_moves(port.w)):
            last = _field(port.w, "last", 1)
            m.d.sync += [self.written.eq(self.written + last), self.beats.eq(Mux(last, 0, self.beats + 1))]
            with m.If(last):
                m.d.sync += self.write_beats[self.written].eq(self.beats)
        for identity, answers in enumerate(self.answered):
            with m.If(_moves(port.b) & (_field(port.b, "id", 0) == identity)):
                m.d.sync += answers.eq(answers + 1)

    def _due(self, identity: int) -> Value:
        """Return the number of writes of an ID with both address and beats accepted."""
        return sum(
            (place < self.writes) & (place < self.written) & (self.owners[place] == identity)
            for place in range(LONGEST)
        )


def _fields(channel) -> dict[str, object]:
    return {name: field for name, field in channel.payload.shape()}


def _field(channel, name: str, constant: int) -> Value:
    """Return a field of a channel; if the channel lacks the field, return its value in AXI4-Lite, `constant`."""
    return channel.payload[name] if name in _fields(channel) else Const(constant)


def _moves(channel) -> Value:
    return channel.valid & channel.ready
