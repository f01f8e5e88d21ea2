"""The rules of AXI4 and AXI4-Lite (ARM IHI 0022) for one port, as properties: those of its manager, to be asserted or
assumed, and those of its subordinate."""

from collections.abc import Callable

from amaranth.hdl import Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data

from neuroncore_rtl.hdl.memory.axi import MAX_BEATS, PAGE_BYTES
from neuroncore_rtl.tb.proofs.proof import stream_stays

__all__ = ["LONGEST", "AxiRules"]

LONGEST = 16
"""Cycles of the longest proof, which is therefore of no more bursts: each has a place of its own."""

Check = Callable[[ValueLike], object]
"""`Assert` or `Assume`."""


class AxiRules:
    """Watches a port, and remembers all of its bursts.

    Arguments:
        m: the module.
        name: of the port, for what is added.
        port: of :class:`hdl.memory.axi.AxiPort`, or of AXI4-Lite, whose bursts have one beat and whose IDs are 0.
        size: bytes of a beat.
    """

    def __init__(self, m: Module, name: str, port, size: int):
        self.m, self.name, self.port, self.size = m, name, port, size
        self.identities = range(1 << len(_field(port.ar, "id", 0)) if "id" in _fields(port.ar) else 1)
        self._watch_reads()
        self._watch_writes()

    def manager(self, check: Check) -> None:
        """Check what a manager must keep to: what it offers stays; bursts are aligned, not too long, and in one page
        of 4 KiB; a write has as many beats as its address says, whichever comes first."""
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
        """Check what a subordinate must keep to: what it offers stays; it answers what was asked, in order within an
        ID, and a write when its address and all of its beats have come; a read has as many beats as were asked for."""
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
        """Of each ID remember how many bursts were asked for and have come, beats of the next, and all lengths."""
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
        """Remember addresses, beats, and answers of each ID."""
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
        """Return how many writes of an ID have come, address and beats."""
        return sum(
            (place < self.writes) & (place < self.written) & (self.owners[place] == identity)
            for place in range(LONGEST)
        )


def _fields(channel) -> dict[str, object]:
    return {name: field for name, field in channel.payload.shape()}


def _field(channel, name: str, constant: int) -> Value:
    """Return a field of a channel; where it has none, what that stands for."""
    return channel.payload[name] if name in _fields(channel) else Const(constant)


def _moves(channel) -> Value:
    return channel.valid & channel.ready
