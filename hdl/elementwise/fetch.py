"""Fetch: reads a step's operands from both memories in parallel, and forwards step and words to the lanes."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.elementwise.issue import ElementwiseIssue, Write
from neuroncore_rtl.hdl.elementwise.job import INTERVAL_BITS
from neuroncore_rtl.hdl.elementwise.place import to_lanes
from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep
from neuroncore_rtl.hdl.memory.port import OnChipStorage, ReadPort
from neuroncore_rtl.spec.config import Config

__all__ = ["ElementwiseFetch"]


class ElementwiseFetch(wiring.Component):
    """Operand fetch. Throughput: one step per cycle, or one per two cycles if both words are in SBUF.

    A step is issued when its last read is accepted. An earlier word is buffered, so that a and b reach the lanes
    together. Latency from issue to the lanes: the read ports' latency.

    Ports:
        i: steps to execute, with the columns that they read and write.
        sbuf, psum: read ports of the memories.
        valid, step: a step for the lanes, which cannot stall it.
        a, b: words of that step, lane 0 lowest, elements right-aligned with undefined bits above; undefined if the step
            does not read the tensor or has fewer partitions than the lane's index.
        writes: announces the issued step's write to the store.
        room: the store can accept another result.
        drained: all announced results are written.
        wait_sbuf, wait_psum, wait_write: a step stalls in this cycle: on SBUF, on PSUM, on the store of results.
        went: a step is issued to the memories in this cycle.
        busy: the last step was issued less than its interval ago.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(ElementwiseIssue)),
                "sbuf": Out(ReadPort(config.partitions, 32, config.port_latency)),
                "psum": Out(ReadPort(config.columns, 32, config.port_latency)),
                "valid": Out(1),
                "step": Out(ElementwiseStep),
                "a": Out(32 * config.partitions),
                "b": Out(32 * config.partitions),
                "writes": Out(stream.Signature(Write, always_ready=True)),
                "room": In(1),
                "drained": In(1),
                "wait_sbuf": Out(1),
                "wait_psum": Out(1),
                "wait_write": Out(1),
                "went": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        issue, sbuf, psum = self.i.payload, self.sbuf, self.psum
        rest = Signal(INTERVAL_BITS)  # cycles until the next step may be issued
        rested = Signal(init=1)  # the interval has elapsed
        may_read, may_go, both, go = Signal(), Signal(), Signal(), Signal()
        held_up = Signal()
        a_done, b_done, a_wanted, b_wanted, a_taken, b_taken = (
            Signal(name=name) for name in ("a_done", "b_done", "a_wanted", "b_wanted", "a_taken", "b_taken")
        )
        a_psum, b_psum = issue.a.storage == OnChipStorage.PSUM, issue.b.storage == OnChipStorage.PSUM
        m.d.comb += [
            held_up.eq((issue.step.writes & ~self.room) | (issue.drain & ~self.drained)),
            may_read.eq(self.i.valid & ~(issue.drain & ~self.drained)),
            may_go.eq(rested & ~held_up),
            # Two words from SBUF share one buffer: b is read into it first, a only when the step can be issued.
            both.eq(issue.reads_a & issue.reads_b & ~a_psum & ~b_psum),
            b_wanted.eq(may_read & issue.reads_b & ~b_done),
            a_wanted.eq(may_read & issue.reads_a & ~a_done & (~both | (b_done & may_go))),
            sbuf.valid.eq((a_wanted & ~a_psum) | (b_wanted & ~b_psum)),
            psum.valid.eq((a_wanted & a_psum) | (b_wanted & b_psum)),
            # The address is independent of the request, which is known later.
            sbuf.address.eq(Mux(issue.reads_a & ~a_psum & (~both | b_done), issue.a.address, issue.b.address) & ~3),
            psum.address.eq(Mux(issue.reads_a & a_psum, issue.a.address, issue.b.address) & ~3),
            a_taken.eq(a_wanted & Mux(a_psum, psum.ready, sbuf.ready)),
            b_taken.eq(b_wanted & Mux(b_psum, psum.ready, sbuf.ready)),
            go.eq(may_read & may_go & (~issue.reads_a | a_done | a_taken) & (~issue.reads_b | b_done | b_taken)),
            self.i.ready.eq(go),
            self.went.eq(go),
            self.busy.eq(~rested),
            self.writes.valid.eq(go & issue.step.writes),
            self.writes.payload.eq(issue.write),
            self.wait_sbuf.eq(sbuf.valid & ~sbuf.ready),
            self.wait_psum.eq(psum.valid & ~psum.ready),
            self.wait_write.eq(self.i.valid & held_up),
        ]
        m.d.sync += [
            a_done.eq((a_done | a_taken) & ~go),
            b_done.eq((b_done | b_taken) & ~go),
            rest.eq(Mux(go, issue.interval - 1, Mux(rested, 0, rest - 1))),
            rested.eq(Mux(go, issue.interval == 1, ~rest[1:].any())),
        ]
        latency = sbuf.signature.latency
        late = latency - 1  # additional cycles of the read ports; all paths here have one cycle in common
        gone = Signal(latency)  # shift register of issued steps
        m.d.sync += gone.eq(Cat(go, gone))
        m.d.comb += self.valid.eq(gone[-1])

        words = {}
        for name, port, partitions in (("sbuf", sbuf, self.config.partitions), ("psum", psum, self.config.columns)):
            kept = Signal(32 * partitions, name=f"{name}_kept", reset_less=True)
            early = Signal(name=f"{name}_early")
            m.d.sync += early.eq(delayed(m, port.valid & port.ready & ~go, late, f"{name}_early"))
            with m.If(early):
                m.d.sync += kept.eq(port.data)
            words[name] = port.data, kept
        step = Signal(ElementwiseStep, reset_less=True)
        m.d.sync += step.eq(delayed(m, issue.step, late, "step"))
        m.d.comb += self.step.eq(step)
        for name, place, taken, out in (("a", issue.a, a_taken, self.a), ("b", issue.b, b_taken, self.b)):
            late_place = Signal.like(place, name=f"{name}_place", reset_less=True)
            just_read = Signal(name=f"{name}_just_read", reset_less=True)
            chosen = Signal(32 * self.config.partitions, name=f"{name}_words")
            m.d.sync += [
                late_place.eq(delayed(m, place, late, f"{name}_place")),
                just_read.eq(delayed(m, taken, late, f"{name}_just_read")),
            ]
            with m.If(late_place.storage == OnChipStorage.PSUM):
                m.d.comb += chosen.eq(Mux(just_read, *words["psum"]))
            with m.Else():
                m.d.comb += chosen.eq(Mux(just_read, *words["sbuf"]))
            m.d.comb += out.eq(to_lanes(m, name, self.config, late_place, chosen))
        return m
