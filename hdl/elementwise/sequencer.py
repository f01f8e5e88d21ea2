"""The sequencer: a job becomes steps, each with the columns that it reads and the one that it writes."""

from amaranth import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.job import INTERVAL_BITS, Job, pointer
from neuroncore_rtl.hdl.elementwise.place import Place
from neuroncore_rtl.hdl.elementwise.step import Phase, Step
from neuroncore_rtl.hdl.elementwise.walker import Walker
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, OnChipStorage
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from neuroncore_rtl.spec.isa.elementwise import VALUES8

__all__ = ["Issue", "Sequencer", "Write"]

_ACCESS_STEP_BITS = 18
"""A step of 16 bits in elements of up to 4 bytes."""


class Write(data.Struct):
    """Where a step's result goes: to so many partitions from a place on. last: the instruction's last."""

    place: Place
    partitions: unsigned(11)
    last: unsigned(1)


class Issue(data.Struct):
    """A step on its way to the memories. reads_a, reads_b: it has a column a, a column b. drain: it must wait until
    everything before it is written. interval: least cycles until the next step."""

    step: Step
    reads_a: unsigned(1)
    reads_b: unsigned(1)
    a: Place
    b: Place
    write: Write
    drain: unsigned(1)
    interval: unsigned(INTERVAL_BITS)


class Sequencer(wiring.Component):
    """Takes a job when the last step of the one before goes, so that steps follow each other without a bubble.

    Ports:
        i: jobs. o: steps, one a cycle; the first one the cycle after its job is taken.
        busy: steps are left.
    """

    i: In(stream.Signature(Job))
    o: Out(stream.Signature(Issue))
    busy: Out(1)

    LATENCY = 1
    """Cycles from a job to its first step."""

    def elaborate(self, platform):
        m = Module()
        job = Signal(Job, reset_less=True)
        phase, number = Signal(Phase), Signal.like(job.results)
        fresh = Signal()  # no step of this job has gone
        begun, after_slow = Signal(), Signal()  # there was a job before; it was slow
        go, final, results_next, load = Signal(), Signal(), Signal(), Signal()
        following = Signal(Phase)  # the phase after the last load
        m.d.comb += [
            self.busy.eq(self.o.valid),
            go.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(~self.o.valid | (go & final)),
            load.eq(self.i.valid & self.i.ready),
            following.eq(Mux(job.values, Phase.LOAD_VALUE, Phase.ELEMENT)),
        ]

        first, last, end, dimension = self._count(m, job, load, go & (phase == Phase.ELEMENT))
        last_result = Signal()
        m.d.comb += [
            last_result.eq(number == job.results - 1),
            results_next.eq(end & (job.results != 0)),
            final.eq(Mux(phase == Phase.RESULT, last_result, (phase == Phase.ELEMENT) & end & ~results_next)),
        ]
        with m.If(go):
            m.d.sync += [fresh.eq(0), number.eq(number + 1)]
            with m.Switch(phase):
                with m.Case(Phase.LOAD_S0):
                    m.d.sync += [phase.eq(Mux(job.loads1, Phase.LOAD_S1, following)), number.eq(0)]
                with m.Case(Phase.LOAD_S1):
                    m.d.sync += [phase.eq(following), number.eq(0)]
                with m.Case(Phase.LOAD_VALUE):
                    with m.If(number == VALUES8 - 1):
                        m.d.sync += [phase.eq(Phase.ELEMENT), number.eq(0)]
                with m.Case(Phase.ELEMENT):
                    m.d.sync += number.eq(0)
                    with m.If(results_next):
                        m.d.sync += phase.eq(Phase.RESULT)
                with m.Default():
                    pass
            with m.If(final):
                m.d.sync += self.o.valid.eq(0)
        with m.If(load):
            new = self.i.payload
            m.d.sync += [
                job.eq(new),
                self.o.valid.eq(1),
                fresh.eq(1),
                after_slow.eq(job.slow & begun),
                begun.eq(1),
                number.eq(0),
                phase.eq(Mux(new.values, Phase.LOAD_VALUE, Phase.ELEMENT)),
            ]
            with m.If(new.loads0 | new.loads1):
                m.d.sync += phase.eq(Mux(new.loads0, Phase.LOAD_S0, Phase.LOAD_S1))

        flowing, addresses = self._walk(m, job, phase, go, load, last, dimension)
        self._issue(m, job, phase, number, first, last, last_result, flowing, addresses)
        m.d.comb += [
            self.o.payload.write.last.eq(final),
            self.o.payload.drain.eq(fresh & (~job.instruction.overlap | job.slow | after_slow)),
        ]
        return m

    def _count(self, m, job, load, advance):
        """Count the indices; return whether the element is the first and the last of its group, the last of all, and
        the dimension along which the next one lies."""
        left = [Signal(16, name=f"left{d}", reset_less=True) for d in range(DIMENSIONS)]
        started = [Signal(name=f"started{d}", reset_less=True) for d in range(DIMENSIONS)]
        at_end = Signal(DIMENSIONS)
        end, first, last = Signal(), Signal(), Signal()
        dimension = Signal(range(DIMENSIONS))
        inside = [d < job.group for d in range(DIMENSIONS)]
        m.d.comb += [
            at_end.eq(Cat(rest == 0 for rest in left)),
            end.eq(at_end.all()),
            first.eq(~Cat(begun & within for begun, within in zip(started, inside, strict=True)).any()),
            last.eq(Cat(at_end[d] | ~within for d, within in enumerate(inside)).all()),
        ]
        for d in reversed(range(DIMENSIONS)):
            with m.If(~at_end[d]):
                m.d.comb += dimension.eq(d)
        for d in range(DIMENSIONS):
            full = self.i.payload.instruction[f"count{d}"] - 1
            again = job.instruction[f"count{d}"] - 1
            with m.If(load):
                m.d.sync += [left[d].eq(full), started[d].eq(0)]
            with m.Elif(advance & (dimension == d)):
                m.d.sync += [left[d].eq(left[d] - 1), started[d].eq(1)]
            if d < DIMENSIONS - 1:
                with m.Elif(advance & (dimension > d)):
                    m.d.sync += [left[d].eq(again), started[d].eq(0)]
        return first, last, end, dimension

    def _walk(self, m, job, phase, go, load, last, dimension):
        """Drive the walkers; return whether a delayed write has begun, and the address of each access."""
        element, result, value = (Signal(name=name) for name in ("element", "result", "value"))
        m.d.comb += [
            element.eq(go & (phase == Phase.ELEMENT)),
            result.eq(go & (phase == Phase.RESULT)),
            value.eq(go & (phase == Phase.LOAD_VALUE)),
        ]
        # A group that is reduced counts as its first element: the steps of its dimensions are not taken.
        taken = Signal()
        m.d.comb += taken.eq(element & ~(job.reduces & (dimension < job.group)))

        # A delayed write follows the reads by one row of dimension 0, and leaves a row as they left the one before it.
        flowing, left_along, late_dimension = Signal(), Signal(range(DIMENSIONS)), Signal(range(DIMENSIONS))
        m.d.comb += late_dimension.eq(Mux(last, left_along, 0))
        with m.If(load):
            m.d.sync += flowing.eq(0)
        with m.Elif(element & last):
            m.d.sync += [flowing.eq(1), left_along.eq(dimension)]

        addresses = {}
        moves = {
            "dst": (
                Mux(job.delayed, element & flowing, taken & job.writes) | (result & ~job.at_b),
                Mux(result, 0, Mux(job.delayed, late_dimension, dimension)),
            ),
            "a": (element, dimension),
            "b": ((element & job.reads_b) | value, Mux(value, 0, dimension)),
        }
        for name, (advance, along) in moves.items():
            m.submodules[name] = walker = Walker(ADDRESS_BITS, _ACCESS_STEP_BITS)
            m.d.comb += [
                walker.load.eq(load),
                walker.start.eq(self.i.payload.instruction[f"{name}_address"]),
                walker.advance.eq(advance),
                walker.dimension.eq(along),
            ]
            for d in range(DIMENSIONS):
                step = job.instruction[f"{name}_step{d}"]
                m.d.comb += getattr(walker, f"step{d}").eq(
                    Array(step << size for size in range(3))[job[f"size_{name}"]]
                )
            addresses[name] = walker.o

        m.submodules.index = index = Walker(64, 32)
        m.d.comb += [
            index.load.eq(load),
            index.start.eq(self.i.payload.instruction.index),
            index.advance.eq(element),
            index.dimension.eq(dimension),
            *(getattr(index, f"step{d}").eq(job.instruction[f"index_step{d}"]) for d in range(DIMENSIONS)),
        ]
        m.d.comb += self.o.payload.step.index.eq(index.o)
        position = Signal(16)
        m.d.comb += self.o.payload.step.position.eq(position)
        with m.If(load):
            m.d.sync += position.eq(0)
        with m.Elif(element):
            m.d.sync += position.eq(position + 1)
        return flowing, addresses

    def _issue(self, m, job, phase, number, first, last, last_result, flowing, addresses):
        """Put the step together."""
        instruction, issue = job.instruction, self.o.payload
        step, a, b, place = issue.step, issue.a, issue.b, issue.write.place
        for name in (
            "opcode", "partitions", "op0", "op1", "reverse0", "reverse1", "negate", "keep", "function", "alpha",
            "sum_continue", "pointer0", "scalar0", "pointer1", "scalar1", "a_dtype", "b_dtype", "dst_dtype", "seed",
            "stream", "index_partition",
        ):  # fmt: skip
            m.d.comb += step[name].eq(instruction[name])
        m.d.comb += [
            step.phase.eq(phase),
            step.number.eq(number),
            step.integer.eq(job.integer),
            a.address.eq(addresses["a"]),
            a.quadrant.eq(instruction.a_quadrant),
            a.storage.eq(instruction.a_storage),
            a.size.eq(job.size_a),
            b.address.eq(addresses["b"]),
            b.quadrant.eq(instruction.b_quadrant),
            b.storage.eq(instruction.b_storage),
            b.size.eq(job.size_b),
            place.address.eq(addresses["dst"]),
            place.quadrant.eq(instruction.dst_quadrant),
            place.storage.eq(instruction.dst_storage),
            place.size.eq(job.size_dst),
            issue.write.partitions.eq(instruction.partitions),
            issue.interval.eq(job.interval),
        ]
        with m.Switch(phase):
            for which, case in enumerate((Phase.LOAD_S0, Phase.LOAD_S1)):
                with m.Case(case):
                    scalar = pointer(instruction, which)
                    m.d.comb += [
                        issue.reads_a.eq(1),
                        step.a_dtype.eq(scalar.dtype),
                        a.address.eq(scalar.address),
                        a.quadrant.eq(scalar.quadrant),
                        a.storage.eq(OnChipStorage.SBUF),
                        a.size.eq(job[f"size_s{which}"]),
                    ]
            with m.Case(Phase.LOAD_VALUE):
                m.d.comb += issue.reads_b.eq(1)
            with m.Case(Phase.ELEMENT):
                m.d.comb += [
                    step.first.eq(first),
                    step.last.eq(last),
                    step.stochastic.eq(instruction.stochastic),
                    step.writes.eq(Mux(job.delayed, flowing, job.writes & (last | ~job.reduces))),
                    issue.reads_a.eq(job.reads_a),
                    issue.reads_b.eq(job.reads_b),
                ]
            with m.Case(Phase.RESULT):
                m.d.comb += [
                    step.first.eq(number == 0),
                    step.last.eq(last_result),
                    step.writes.eq(1),
                ]
                with m.If(job.at_b):
                    m.d.comb += [step.dst_dtype.eq(instruction.b_dtype), place.eq(b)]
            with m.Default():
                pass
