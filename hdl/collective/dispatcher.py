"""Dispatcher of a channel: splits each step of a collective into loads, a receive and a send, and queues them.

Each queue feeds one unit of the channel.
"""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.job import CollectiveJobLayout
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, LoadOp, ReceiveOp, SendOp
from neuroncore_rtl.hdl.collective.step import CollectiveStep, Phase
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType

__all__ = ["Dispatcher"]

_K = CollectiveKind

_OUTPUTS = {"loads": LoadOp, "receives": ReceiveOp, "send_loads": LoadOp, "sends": SendOp}


class Dispatcher(wiring.Component):
    """Accepts one step per cycle if its queues have room for all operations of the step; an empty step has none.

    Ports:
        job: the instruction that the steps execute; stable while steps are pending.
        end: index after the last element of the channel's part of a block; stable while steps are pending.
        begins: a job begins; no operation of it has been queued.
        busy: operations are queued.
    """

    DEPTH = 8
    """Number of entries of each queue of operations."""

    job: In(CollectiveJobLayout)
    end: In(ELEMENTS_BITS + 1)
    begins: In(1)
    i: In(stream.Signature(CollectiveStep))
    loads: Out(stream.Signature(LoadOp))
    receives: Out(stream.Signature(ReceiveOp))
    send_loads: Out(stream.Signature(LoadOp))
    sends: Out(stream.Signature(SendOp))
    busy: Out(1)

    def elaborate(self, platform):
        m = Module()
        step, job = self.i.payload, self.job
        phase = {p: Signal(name=f"in_{p.name.lower()}") for p in Phase}
        m.d.comb += [is_phase.eq(step.phase == p) for p, is_phase in phase.items()]
        final, forward, partial = (Signal(name=n) for n in ("final", "forward", "partial"))
        bf16 = job.dtype == CollectiveType.BF16
        reduces = (job.kind == _K.ALL_REDUCE) | (job.kind == _K.REDUCE_SCATTER)
        scatters = job.kind == _K.REDUCE_SCATTER
        m.d.comb += [
            final.eq(phase[Phase.REDUCE] & step.final),
            forward.eq((phase[Phase.REDUCE] & ~(final & scatters)) | (phase[Phase.GATHER] & ~(step.ends | step.token))),
            partial.eq(reduces & bf16 & ~job.narrow),
        ]
        wanted = {
            "loads": phase[Phase.OWN] | phase[Phase.REDUCE],
            "send_loads": phase[Phase.SEND],
            "receives": ~phase[Phase.SEND],
            "sends": phase[Phase.SEND] | forward,
        }
        empty, elements, offset = self._clip(m, bf16)
        queues, ops = self._queue(m, wanted, empty)
        self._load(m, ops["loads"], phase[Phase.REDUCE] & bf16)
        self._load(m, ops["send_loads"], partial)
        self._receive(m, ops["receives"], phase, partial, final, forward)
        self._send(m, ops["sends"], phase, partial & (phase[Phase.SEND] | (phase[Phase.REDUCE] & ~final)))
        for op in ops.values():
            m.d.comb += [op.dtype.eq(job.dtype), op.elements.eq(elements)]
        m.d.comb += [
            *(ops[name].address.eq(job.src + step.load_block + offset) for name in ("loads", "send_loads")),
            ops["receives"].store_address.eq(job.dst + step.store_block + offset),
        ]
        self._mark_new_peers(m, ops["receives"], ops["sends"], queues)
        return m

    def _clip(self, m: Module, bf16: Value) -> tuple[Signal, Signal, Signal]:
        """Limit the step's segment to the channel's part of a block.

        Return whether the segment is empty, its number of elements, and its byte offset in the block.
        """
        step, job = self.i.payload, self.job
        empty, left, elements = Signal(), Signal(ELEMENTS_BITS), Signal(ELEMENTS_BITS)
        offset = Signal(ELEMENTS_BITS + 2)
        in_rounds = ~((job.kind == _K.ALL_TO_ALL) | (job.kind == _K.SEND) | (job.kind == _K.RECEIVE))
        m.d.comb += [
            empty.eq(step.first >= self.end),
            left.eq(self.end - step.first),
            elements.eq(Mux(step.token, 1, Mux(in_rounds & (left > job.chunk), job.chunk, left))),
            offset.eq(step.first << Mux(bf16, 1, 2)),
        ]
        return empty, elements, offset

    def _queue(self, m: Module, wanted: dict[str, Value], empty: Signal) -> tuple[dict, dict]:
        """Accept a step when the queues have room for its `wanted` operations.

        Return the queues, and the signals of the operations to write, by name.
        """
        queues, ops = {}, {}
        taken = self.i.valid & self.i.ready
        for name, shape in _OUTPUTS.items():
            m.submodules[name] = queues[name] = queue = BufferedFifo(shape, self.DEPTH)
            wiring.connect(m, queue.o, wiring.flipped(getattr(self, name)))
            ops[name] = Signal(shape, name=f"{name}_op")
            m.d.comb += [queue.i.payload.eq(ops[name]), queue.i.valid.eq(taken & wanted[name] & ~empty)]
        room = Cat(queue.i.ready | ~wanted[name] for name, queue in queues.items()).all()
        m.d.comb += [
            self.i.ready.eq(empty | room),
            self.busy.eq(Cat(queue.level.any() for queue in queues.values()).any()),
        ]
        return queues, ops

    def _load(self, m: Module, load, wide: Value) -> None:
        m.d.comb += [load.zero.eq((self.job.kind == _K.BARRIER) | self.i.payload.token), load.wide.eq(wide)]

    def _receive(self, m: Module, receive, phase: dict, partial: Signal, final: Signal, forward: Signal) -> None:
        step, job = self.i.payload, self.job
        barrier = job.kind == _K.BARRIER
        m.d.comb += [
            receive.net.eq(~phase[Phase.OWN]),
            receive.load.eq(~phase[Phase.GATHER]),
            receive.zero.eq(barrier),
            receive.store.eq(~(barrier | step.token) & (final | ~phase[Phase.REDUCE])),
            receive.forward.eq(forward),
            receive.final.eq(final),
            receive.op.eq(job.op),
            receive.wide_in.eq(phase[Phase.REDUCE] & partial),
            receive.wide_out.eq(phase[Phase.REDUCE] & partial & ~final),
            receive.stochastic.eq(final & job.stochastic),
            receive.first_element.eq(step.first),
            receive.peer.eq(step.receive_peer),
        ]

    def _send(self, m: Module, send, phase: dict, wide: Value) -> None:
        m.d.comb += [
            send.load.eq(phase[Phase.SEND]),
            send.wide.eq(wide),
            send.peer.eq(self.i.payload.send_peer),
        ]

    def _mark_new_peers(self, m: Module, receive, send, queues: dict) -> None:
        """Set `new_peer` in the first receive and first send of a job, and in every one of ALL_TO_ALL."""
        new_receiver, new_sender = Signal(), Signal()  # the job had no send yet; it had no receive yet
        to_all = self.job.kind == _K.ALL_TO_ALL
        m.d.comb += [receive.new_peer.eq(receive.net & (new_sender | to_all)), send.new_peer.eq(new_receiver | to_all)]
        with m.If(self.begins):
            m.d.sync += [new_receiver.eq(1), new_sender.eq(1)]
        with m.If(queues["sends"].i.valid):
            m.d.sync += new_receiver.eq(0)
        with m.If(queues["receives"].i.valid & receive.net):
            m.d.sync += new_sender.eq(0)
