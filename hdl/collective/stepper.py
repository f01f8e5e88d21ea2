"""Stepper: enumerates the rounds, phases and steps of a channel's part of an instruction."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.job import CollectiveJobLayout
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS
from neuroncore_rtl.hdl.collective.step import CollectiveStep, Phase
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import GRANULE, RANK_BITS, CollectiveKind
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Stepper"]

_K = CollectiveKind

_GRANULE_BITS = GRANULE.bit_length() - 1


class _Walk(data.Struct):
    """Position in the ring: a rank, its core, and its segment's start, which is the job's `unit` times the rank."""

    rank: unsigned(RANK_BITS)
    core: unsigned(CORE_BITS)
    place: unsigned(HBM_ADDRESS_BITS)


class Stepper(wiring.Component):
    """Issues one step per cycle.

    Arguments:
        channel: direction: 0 sends to the next rank, 1 to the previous one.

    Ports:
        job: the last job accepted at `i`, from the next cycle on.
        end: index after the last element of the channel's part of a block.
        begins: the first step of `job` is next.
        o: steps; a step that begins at `end` or later is empty.
        busy: steps of `job` are pending.
    """

    def __init__(self, channel: int):
        self.channel = channel
        super().__init__(
            {
                "i": In(stream.Signature(CollectiveJobLayout)),
                "job": Out(CollectiveJobLayout),
                "end": Out(ELEMENTS_BITS + 1),
                "begins": Out(1),
                "o": Out(stream.Signature(CollectiveStep)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._name_kinds(m)
        # `at` steps through the ranks against the channel's direction, `to` along it; only ALL_TO_ALL steps `to`.
        self._at, self._to, self._outset = (Signal(_Walk, name=n, reset_less=True) for n in ("at", "to", "outset"))
        self._before = self._neighbour(m, "before", self._at, up=self.channel == 1)
        self._after = self._neighbour(m, "after", self._to, up=self.channel == 0)
        self._succ, self._pred = (Signal(CORE_BITS, name=n, reset_less=True) for n in ("succ", "pred"))
        self._tail = Signal(reset_less=True)  # this rank ends the chain of a broadcast
        self._token = Signal(reset_less=True)
        self._in_place = Signal(reset_less=True)  # src is this rank's block of dst
        self._base, self._advance = Signal(ELEMENTS_BITS + 1, reset_less=True), Signal(ELEMENTS_BITS + 1)
        self._phase, self._outset_phase = Signal(Phase, reset_less=True), Signal(Phase)
        self._left = Signal(RANK_BITS, reset_less=True)  # remaining steps of the phase, or peers of ALL_TO_ALL
        self._steps, self._round_ends = Signal(), Signal()
        self._control(m)
        self._make_step(m)
        self._proceed(m)
        return m

    def _name_kinds(self, m: Module) -> None:
        kind = {k: Signal(name=f"is_{k.name.lower()}") for k in _K}
        m.d.comb += [is_kind.eq(self.job.kind == k) for k, is_kind in kind.items()]
        self._kind = kind
        self._reduces_all = kind[_K.ALL_REDUCE] | kind[_K.BARRIER]
        self._reduces = self._reduces_all | kind[_K.REDUCE_SCATTER]
        self._to_all = kind[_K.ALL_TO_ALL]
        self._transfers = kind[_K.SEND] | kind[_K.RECEIVE]

    def _neighbour(self, m: Module, name: str, walk, up: bool) -> Signal:
        job, stepped = self.job, Signal(_Walk, name=name)
        if up:
            wraps = walk.rank == job.last_rank
            rank, core, place = 0, job.first_core, 0
            step = 1
        else:
            wraps = walk.rank == 0
            rank, core, place = job.last_rank, job.last_core, job.top
            step = -1
        m.d.comb += [
            stepped.rank.eq(Mux(wraps, rank, walk.rank + step)),
            stepped.core.eq(Mux(wraps, core, walk.core + step * job.stride)),
            stepped.place.eq(Mux(wraps, place, walk.place + step * job.unit)),
        ]
        return stepped

    def _part(self, m: Module) -> Signal:
        """Set `end`, and return the index of the first element of the channel's part of a block."""
        job = self.job
        middle, start = (Signal(ELEMENTS_BITS + 1, name=name) for name in ("middle", "start"))
        granules = (job.count + (GRANULE - 1)) >> _GRANULE_BITS
        whole_blocks = job.kind == _K.ALL_TO_ALL
        m.d.comb += middle.eq(((granules + 1) >> 1) << _GRANULE_BITS)
        if self.channel == 0:
            m.d.comb += [start.eq(0), self.end.eq(Mux(whole_blocks | (job.count < middle), job.count, middle))]
        else:
            m.d.comb += [start.eq(Mux(whole_blocks, 0, middle)), self.end.eq(job.count)]
        return start

    def _control(self, m: Module) -> None:
        idle, over, root = (Signal(name=name) for name in ("idle", "over", "root"))
        start = self._part(m)
        receives_first = self._kind[_K.RECEIVE] | (self._kind[_K.BROADCAST] & ~root)
        m.d.comb += [
            self._advance.eq(Mux(self._reduces_all, self.job.top + self.job.unit, self.job.chunk)),
            over.eq(self._to_all | self._transfers | (self._base + self._advance >= self.end)),
            root.eq(self.job.rank == self.job.root),
            self._outset_phase.eq(Mux(receives_first, Phase.GATHER, Phase.SEND)),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [idle.eq(1), self.i.ready.eq(~self.o.valid)]
                with m.If(self.i.valid & ~self.o.valid):
                    m.d.sync += self.job.eq(self.i.payload)
                    for walk in (self._at, self._to):
                        for member, source in {"rank": "rank", "core": "core", "place": "own"}.items():
                            m.d.sync += walk[member].eq(self.i.payload[source])
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += self.begins.eq(1)
                self._begin_rounds(m, start, root)
                m.next = "STEP"
                with m.If(start >= self.end):
                    m.next = "IDLE"
            with m.State("STEP"):
                m.d.comb += self._steps.eq(~self.o.valid | self.o.ready)
                with m.If(self._round_ends & over):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(~idle | self.o.valid)

    def _begin_rounds(self, m: Module, start: Signal, root: Signal) -> None:
        """Begin the first round.

        The walk `at` starts one rank against the channel's direction, the walk `to` one rank along it.
        """
        job, kind = self.job, self._kind
        peers = (job.last_rank + (1 - self.channel)) >> 1  # ALL_TO_ALL: number of ranks that this channel serves
        tail = self._after.rank == job.root
        m.d.sync += [
            self._at.eq(self._before),
            self._outset.eq(self._before),
            self._to.eq(self._after),
            self._pred.eq(Mux(self._transfers, job.root_core, self._before.core)),
            self._succ.eq(Mux(self._transfers, job.root_core, self._after.core)),
            self._tail.eq(tail),
            self._in_place.eq(job.src == job.dst + job.own),
            self._token.eq(self._transfers | (kind[_K.BROADCAST] & (root | tail))),
            self._base.eq(start),
            self._phase.eq(Mux(self._to_all & (peers == 0), Phase.OWN, self._outset_phase)),
            self._left.eq(Mux(self._to_all, peers, 1)),
        ]

    def _make_step(self, m: Module) -> None:
        """Offer a step at `o`. The methods of the phases set the blocks and cores of the step."""
        kind, phase, left = self._kind, self._phase, self._left
        self._step = step = Signal(CollectiveStep, reset_less=True)
        m.d.comb += self.o.payload.eq(step)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self._steps):
            m.d.sync += [
                self.o.valid.eq(1),
                step.phase.eq(Mux(self._token, Mux(phase == Phase.SEND, Phase.GATHER, Phase.SEND), phase)),
                step.token.eq(self._token),
                self._token.eq(0),
                step.first.eq(self._base + Mux(self._reduces_all, self._at.place, 0)),
                step.load_block.eq(0),
                step.store_block.eq(0),
                step.send_peer.eq(Mux(self._to_all, self._to.core, self._succ)),
                step.receive_peer.eq(Mux(self._to_all, self._at.core, self._pred)),
                step.final.eq(left == 1),
                step.ends.eq(Mux(kind[_K.BROADCAST], self._tail, left == 1) | self._to_all | kind[_K.RECEIVE]),
            ]

    def _proceed(self, m: Module) -> None:
        """Advance to the next step, phase or round. A token, if the job needs one, precedes the first step."""
        phases = {
            Phase.SEND: self._after_send,
            Phase.OWN: self._after_own,
            Phase.REDUCE: self._after_reduce,
            Phase.GATHER: self._after_gather,
        }
        with m.If(self._steps & ~self._token):
            with m.Switch(self._phase):
                for phase, proceed in phases.items():
                    with m.Case(phase):
                        proceed(m)
            with m.If(self._round_ends):
                m.d.sync += [
                    self._base.eq(self._base + self._advance),
                    self._at.eq(self._outset),
                    self._phase.eq(self._outset_phase),
                    self._left.eq(1),
                ]

    def _after_send(self, m: Module) -> None:
        with m.If(self._kind[_K.REDUCE_SCATTER]):
            m.d.sync += self._step.load_block.eq(self._at.place)
        with m.If(self._to_all):
            m.d.sync += [self._step.load_block.eq(self._to.place), self._phase.eq(Phase.GATHER)]
        with m.Elif(self._reduces):
            m.d.sync += [self._at.eq(self._before), self._phase.eq(Phase.REDUCE), self._left.eq(self.job.last_rank)]
        with m.Elif(self._kind[_K.ALL_GATHER] & self._in_place):
            m.d.sync += [self._phase.eq(Phase.GATHER), self._left.eq(self.job.last_rank)]
        with m.Else():
            m.d.sync += self._phase.eq(Phase.OWN)
            m.d.comb += self._round_ends.eq(self._kind[_K.SEND])

    def _after_own(self, m: Module) -> None:
        with m.If(self._to_all):
            m.d.sync += self._step.load_block.eq(self.job.own)
        with m.If(self._to_all | self._kind[_K.ALL_GATHER]):
            m.d.sync += self._step.store_block.eq(self.job.own)
        m.d.sync += [self._phase.eq(Phase.GATHER), self._left.eq(self.job.last_rank)]
        m.d.comb += self._round_ends.eq(~self._kind[_K.ALL_GATHER])

    def _after_reduce(self, m: Module) -> None:
        with m.If(self._kind[_K.REDUCE_SCATTER]):
            m.d.sync += self._step.load_block.eq(self._at.place)
        m.d.sync += [self._at.eq(self._before), self._left.eq(self._left - 1)]
        with m.If(self._left == 1):
            m.d.sync += [self._phase.eq(Phase.GATHER), self._left.eq(self.job.last_rank)]
            m.d.comb += self._round_ends.eq(~self._reduces_all)

    def _after_gather(self, m: Module) -> None:
        with m.If(self._to_all | self._kind[_K.ALL_GATHER]):
            m.d.sync += self._step.store_block.eq(self._at.place)
        m.d.sync += [self._at.eq(self._before), self._to.eq(self._after), self._left.eq(self._left - 1)]
        with m.If(self._to_all):
            m.d.sync += self._phase.eq(Phase.SEND)
        with m.If(self._left == 1):
            if self.channel == 1:
                m.d.sync += self._phase.eq(Phase.OWN)
                m.d.comb += self._round_ends.eq(~self._to_all)
            else:
                m.d.comb += self._round_ends.eq(1)
