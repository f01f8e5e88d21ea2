"""The schedule: makes one channel's operations from an instruction, in the order in which they depend on each other.

The channel's part of the vector is gone through in rounds; a round is a few phases, a phase some steps of one segment
each:

    ALL_REDUCE      SEND  REDUCE * (ranks - 1)  GATHER * (ranks - 1)
    REDUCE_SCATTER  SEND  REDUCE * (ranks - 1)
    ALL_GATHER      SEND  OWN  GATHER * (ranks - 1)
    BROADCAST       SEND  OWN, of the root; else GATHER; after a token from the last rank to the root
    ALL_TO_ALL      (SEND  GATHER) * peers  OWN, of channel 1
    SEND, RECEIVE   SEND; GATHER; after a token from RECEIVE to SEND
    BARRIER         as ALL_REDUCE, of one element that is not in memory

SEND loads a segment and sends it; OWN copies one in memory; REDUCE adds what comes to what is loaded, and GATHER takes
what comes; both send it on, but for the last ranks that it is for. The segments of successive steps are those of ranks
against the direction of the channel.

A token is one element that is not in memory. Who receives no data waits for it, and so says READY as all others do: any
two who send or receive something of each other are in the same collective, or find that they are not.
"""

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.job import Job
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, LoadOp, ReceiveOp, SendOp
from neuroncore_rtl.hdl.fifo import BufferedFifo
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import GRANULE, CollectiveKind, CollectiveType
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Schedule"]

_K = CollectiveKind

_GRANULE_BITS = GRANULE.bit_length() - 1


class _Phase(enum.Enum, shape=unsigned(2)):
    SEND = 0
    OWN = 1
    REDUCE = 2
    GATHER = 3


class _Walk(data.Struct):
    """A rank, its core, and where its segment is, in terms of the job's `unit`."""

    rank: unsigned(6)
    core: unsigned(CORE_BITS)
    place: unsigned(HBM_ADDRESS_BITS)


class _Step(data.Struct):
    """A step whose segment has still to be clipped to the channel's part. first: element of the block. load_block,
    store_block: bytes from src and dst to the block. send_peer, receive_peer: who else is in it. final: the last
    reduction of its segment. ends: the last core that what comes is for. token: one element, not in memory."""

    phase: _Phase
    first: unsigned(ELEMENTS_BITS + 1)
    load_block: unsigned(HBM_ADDRESS_BITS)
    store_block: unsigned(HBM_ADDRESS_BITS)
    send_peer: unsigned(CORE_BITS)
    receive_peer: unsigned(CORE_BITS)
    final: unsigned(1)
    ends: unsigned(1)
    token: unsigned(1)


class Schedule(wiring.Component):
    """Makes the operations of a step in a cycle; a step without elements makes none. `DEPTH` of each kind wait.

    All operations of a step are given out together, so that whoever waits for one of them waits for a unit, not for the
    schedule.

    Arguments:
        channel: 0 sends to the next rank, 1 to the previous one.

    Ports:
        i: legal jobs. job: the last one taken, from the next cycle on.
        loads, receives, sends: operations. busy: some of `job` are not yet taken.
    """

    DEPTH = 8
    """Operations of each kind that are made ahead."""

    def __init__(self, channel: int):
        self.channel = channel
        super().__init__(
            {
                "i": In(stream.Signature(Job)),
                "job": Out(Job),
                "loads": Out(stream.Signature(LoadOp)),
                "receives": Out(stream.Signature(ReceiveOp)),
                "sends": Out(stream.Signature(SendOp)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        job = self.job
        # The channel's part, from element `start` to `end` of a block.
        middle, start, end = (Signal(ELEMENTS_BITS + 1, name=name) for name in ("middle", "start", "end"))
        granules = (job.count + (GRANULE - 1)) >> _GRANULE_BITS
        whole_blocks = job.kind == _K.ALL_TO_ALL
        m.d.comb += middle.eq(((granules + 1) >> 1) << _GRANULE_BITS)
        if self.channel == 0:
            m.d.comb += [start.eq(0), end.eq(Mux(whole_blocks | (job.count < middle), job.count, middle))]
        else:
            m.d.comb += [start.eq(Mux(whole_blocks, 0, middle)), end.eq(job.count)]
        step, pending, taken, idle = Signal(_Step, reset_less=True), Signal(), Signal(), Signal()
        begins = self._sequence(m, start, end, step, pending, taken, idle)
        queued = self._give_out(m, end, step, pending, taken, begins)
        m.d.comb += self.busy.eq(~idle | pending | queued)
        return m

    def _sequence(self, m: Module, start, end, step, pending, taken, idle) -> Signal:
        """Go from step to step; return whether the first one of a job comes next."""
        job = self.job
        kind = {k: Signal(name=f"is_{k.name.lower()}") for k in _K}
        m.d.comb += [is_kind.eq(job.kind == k) for k, is_kind in kind.items()]
        reduces_all = kind[_K.ALL_REDUCE] | kind[_K.BARRIER]
        reduces = reduces_all | kind[_K.REDUCE_SCATTER]
        to_all = kind[_K.ALL_TO_ALL]

        # `at` goes against the direction of the channel, `to` along it; `to` only where each step has its own peers.
        at, to, outset = (Signal(_Walk, name=name, reset_less=True) for name in ("at", "to", "outset"))
        before, after = (Signal(_Walk, name=name) for name in ("before", "after"))
        self._walk(m, at, before, up=self.channel == 1)
        self._walk(m, to, after, up=self.channel == 0)
        succ, pred = (Signal(CORE_BITS, name=name, reset_less=True) for name in ("succ", "pred"))
        root, tail = Signal(), Signal(reset_less=True)  # of a broadcast: the first and the last of the chain
        peers = (job.last_rank + (1 - self.channel)) >> 1  # of ALL_TO_ALL, whom this channel sends to

        base, advance, over = Signal(ELEMENTS_BITS + 1, reset_less=True), Signal(ELEMENTS_BITS + 1), Signal()
        phase, outset_phase = Signal(_Phase, reset_less=True), Signal(_Phase)
        left = Signal(6, reset_less=True)  # steps of the phase; of ALL_TO_ALL peers
        begins, steps, round_ends = Signal(), Signal(), Signal()
        token, transfer = Signal(reset_less=True), kind[_K.SEND] | kind[_K.RECEIVE]
        m.d.comb += [
            advance.eq(Mux(reduces_all, job.top + job.unit, job.chunk)),
            over.eq(to_all | transfer | (base + advance >= end)),
            root.eq(job.rank == job.root),
            outset_phase.eq(Mux(kind[_K.RECEIVE] | (kind[_K.BROADCAST] & ~root), _Phase.GATHER, _Phase.SEND)),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [idle.eq(1), self.i.ready.eq(~pending)]
                with m.If(self.i.valid & ~pending):
                    m.d.sync += job.eq(self.i.payload)
                    for walk in (at, to):
                        for member, source in {"rank": "rank", "core": "core", "place": "own"}.items():
                            m.d.sync += walk[member].eq(self.i.payload[source])
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += begins.eq(1)
                m.d.sync += [
                    at.eq(before),
                    outset.eq(before),
                    to.eq(after),
                    pred.eq(Mux(transfer, job.root_core, before.core)),
                    succ.eq(Mux(transfer, job.root_core, after.core)),
                    tail.eq(after.rank == job.root),
                    token.eq(transfer | (kind[_K.BROADCAST] & (root | (after.rank == job.root)))),
                    base.eq(start),
                    phase.eq(Mux(to_all & (peers == 0), _Phase.OWN, outset_phase)),
                    left.eq(Mux(to_all, peers, 1)),
                ]
                m.next = "STEP"
                with m.If(start >= end):
                    m.next = "IDLE"
            with m.State("STEP"):
                m.d.comb += steps.eq(~pending | taken)
                with m.If(round_ends & over):
                    m.next = "IDLE"
        with m.If(taken):
            m.d.sync += pending.eq(0)
        with m.If(steps):
            m.d.sync += [
                pending.eq(1),
                step.phase.eq(Mux(token, Mux(phase == _Phase.SEND, _Phase.GATHER, _Phase.SEND), phase)),
                step.token.eq(token),
                token.eq(0),
                step.first.eq(base + Mux(reduces_all, at.place, 0)),
                step.load_block.eq(0),
                step.store_block.eq(0),
                step.send_peer.eq(Mux(to_all, to.core, succ)),
                step.receive_peer.eq(Mux(to_all, at.core, pred)),
                step.final.eq(left == 1),
                step.ends.eq(Mux(kind[_K.BROADCAST], tail, left == 1) | to_all | kind[_K.RECEIVE]),
            ]
        with m.If(steps & ~token):
            with m.Switch(phase):
                with m.Case(_Phase.SEND):
                    with m.If(kind[_K.REDUCE_SCATTER]):
                        m.d.sync += step.load_block.eq(at.place)
                    with m.If(to_all):
                        m.d.sync += [step.load_block.eq(to.place), phase.eq(_Phase.GATHER)]
                    with m.Elif(reduces):
                        m.d.sync += [at.eq(before), phase.eq(_Phase.REDUCE), left.eq(job.last_rank)]
                    with m.Else():
                        m.d.sync += phase.eq(_Phase.OWN)
                        m.d.comb += round_ends.eq(kind[_K.SEND])
                with m.Case(_Phase.OWN):
                    with m.If(to_all):
                        m.d.sync += step.load_block.eq(job.own)
                    with m.If(to_all | kind[_K.ALL_GATHER]):
                        m.d.sync += step.store_block.eq(job.own)
                    m.d.sync += [phase.eq(_Phase.GATHER), left.eq(job.last_rank)]
                    m.d.comb += round_ends.eq(~kind[_K.ALL_GATHER])
                with m.Case(_Phase.REDUCE):
                    with m.If(kind[_K.REDUCE_SCATTER]):
                        m.d.sync += step.load_block.eq(at.place)
                    m.d.sync += [at.eq(before), left.eq(left - 1)]
                    with m.If(left == 1):
                        m.d.sync += [phase.eq(_Phase.GATHER), left.eq(job.last_rank)]
                        m.d.comb += round_ends.eq(~reduces_all)
                with m.Case(_Phase.GATHER):
                    with m.If(to_all | kind[_K.ALL_GATHER]):
                        m.d.sync += step.store_block.eq(at.place)
                    m.d.sync += [at.eq(before), to.eq(after), left.eq(left - 1)]
                    with m.If(to_all):
                        m.d.sync += phase.eq(_Phase.SEND)
                    with m.If(left == 1):
                        if self.channel == 1:
                            m.d.sync += phase.eq(_Phase.OWN)
                            m.d.comb += round_ends.eq(~to_all)
                        else:
                            m.d.comb += round_ends.eq(1)
            with m.If(round_ends):
                m.d.sync += [base.eq(base + advance), at.eq(outset), phase.eq(outset_phase), left.eq(1)]
        return begins

    def _walk(self, m: Module, walk, stepped, up: bool) -> None:
        """Let `stepped` be the neighbour of `walk`, round the group."""
        job = self.job
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

    def _give_out(self, m: Module, end, step, pending, taken, begins) -> Value:
        """Clip the segment of `step`, and queue its operations; return whether there are some in the queues."""
        job = self.job
        empty = Signal()
        outputs = {"loads": LoadOp, "receives": ReceiveOp, "sends": SendOp}
        queues, ops, wanted = {}, {}, {}
        for name, shape in outputs.items():
            m.submodules[name] = queue = BufferedFifo(shape, self.DEPTH)
            wiring.connect(m, queue.o, wiring.flipped(getattr(self, name)))
            queues[name] = queue
            ops[name], wanted[name] = Signal(shape, name=f"{name}_op"), Signal(name=f"{name}_wanted")
            m.d.comb += [
                queue.i.payload.eq(ops[name]),
                queue.i.valid.eq(taken & wanted[name] & ~empty),
            ]
        load, receive, send = ops.values()

        phase = {p: Signal(name=f"in_{p.name.lower()}") for p in _Phase}
        m.d.comb += [is_phase.eq(step.phase == p) for p, is_phase in phase.items()]
        barrier, bf16 = job.kind == _K.BARRIER, job.dtype == CollectiveType.BF16
        reduces = (job.kind == _K.ALL_REDUCE) | (job.kind == _K.REDUCE_SCATTER)
        scatters = job.kind == _K.REDUCE_SCATTER
        in_rounds = ~((job.kind == _K.ALL_TO_ALL) | (job.kind == _K.SEND) | (job.kind == _K.RECEIVE))
        left, elements, offset = Signal(ELEMENTS_BITS), Signal(ELEMENTS_BITS), Signal(ELEMENTS_BITS + 2)
        final, forward, partial = (Signal(name=n) for n in ("final", "forward", "partial"))
        new_receiver, new_sender = Signal(), Signal()  # nothing was sent, or received, of this job so far
        m.d.comb += [
            empty.eq(step.first >= end),
            left.eq(end - step.first),
            elements.eq(Mux(step.token, 1, Mux(in_rounds & (left > job.chunk), job.chunk, left))),
            offset.eq(step.first << Mux(bf16, 1, 2)),
            final.eq(phase[_Phase.REDUCE] & step.final),
            forward.eq(
                (phase[_Phase.REDUCE] & ~(final & scatters)) | (phase[_Phase.GATHER] & ~(step.ends | step.token))
            ),
            partial.eq(reduces & bf16 & ~job.narrow),
            wanted["loads"].eq(~phase[_Phase.GATHER]),
            wanted["receives"].eq(~phase[_Phase.SEND]),
            wanted["sends"].eq(phase[_Phase.SEND] | forward),
            taken.eq(pending & (empty | Cat(queues[n].i.ready | ~wanted[n] for n in outputs).all())),
            load.to_send.eq(phase[_Phase.SEND]),
            load.zero.eq(barrier | step.token),
            load.wide.eq(Mux(phase[_Phase.SEND], partial, phase[_Phase.REDUCE] & bf16)),
            load.dtype.eq(job.dtype),
            load.elements.eq(elements),
            load.address.eq(job.src + step.load_block + offset),
            receive.net.eq(~phase[_Phase.OWN]),
            receive.load.eq(~phase[_Phase.GATHER]),
            receive.zero.eq(barrier),
            receive.store.eq(~(barrier | step.token) & (final | ~phase[_Phase.REDUCE])),
            receive.forward.eq(forward),
            receive.final.eq(final),
            receive.op.eq(job.op),
            receive.dtype.eq(job.dtype),
            receive.wide_in.eq(phase[_Phase.REDUCE] & partial),
            receive.wide_out.eq(phase[_Phase.REDUCE] & partial & ~final),
            receive.stochastic.eq(final & job.stochastic),
            receive.elements.eq(elements),
            receive.store_address.eq(job.dst + step.store_block + offset),
            receive.first_element.eq(step.first),
            receive.new_peer.eq(receive.net & (new_sender | (job.kind == _K.ALL_TO_ALL))),
            receive.peer.eq(step.receive_peer),
            send.load.eq(phase[_Phase.SEND]),
            send.wide.eq(partial & (phase[_Phase.SEND] | (phase[_Phase.REDUCE] & ~final))),
            send.dtype.eq(job.dtype),
            send.elements.eq(elements),
            send.new_peer.eq(new_receiver | (job.kind == _K.ALL_TO_ALL)),
            send.peer.eq(step.send_peer),
        ]
        with m.If(begins):
            m.d.sync += [new_receiver.eq(1), new_sender.eq(1)]
        with m.If(queues["sends"].i.valid):
            m.d.sync += new_receiver.eq(0)
        with m.If(queues["receives"].i.valid & receive.net):
            m.d.sync += new_sender.eq(0)
        return Cat(queue.level.any() for queue in queues.values()).any()
