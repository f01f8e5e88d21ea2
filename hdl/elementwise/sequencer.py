"""Sequencer: expands a job into steps with the columns that they read and write."""

from types import SimpleNamespace

from amaranth import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.address_generator import ElementwiseAddressGenerator
from neuroncore_rtl.hdl.elementwise.indices import Indices
from neuroncore_rtl.hdl.elementwise.issue import ElementwiseIssue
from neuroncore_rtl.hdl.elementwise.job import ElementwiseJobLayout, pointer
from neuroncore_rtl.hdl.elementwise.step import OF_INSTRUCTION, Phase
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, OnChipStorage
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from neuroncore_rtl.spec.isa.elementwise import VALUES8

__all__ = ["ElementwiseSequencer"]

_ACCESS_STEP_BITS = 18
"""Width of an access's step in bytes: an instruction has 16 bits for the step in elements of up to 4 bytes."""


class ElementwiseSequencer(wiring.Component):
    """Step generator: one step per cycle, without a bubble between jobs.

    Ports:
        i: jobs; each is accepted in the cycle in which the last step of the previous job is issued.
        o: steps; the first one in the cycle after its job is accepted.
        busy: steps of a job remain to be issued.
    """

    i: In(stream.Signature(ElementwiseJobLayout))
    o: Out(stream.Signature(ElementwiseIssue))
    busy: Out(1)

    LATENCY = timing.SEQUENCER_LATENCY
    """Cycles from a job to its first step."""

    def elaborate(self, platform):
        m = Module()
        now = self._now()
        job, phase = now.job, now.phase
        begun, after_slow = Signal(), Signal()  # a job preceded the current one; that job was slow
        m.d.comb += [
            self.busy.eq(self.o.valid),
            now.go.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(~self.o.valid | (now.go & now.final)),
            now.load.eq(self.i.valid & self.i.ready),
        ]
        m.submodules.indices = indices = Indices()
        m.d.comb += [
            indices.load.eq(now.load),
            indices.group.eq(job.group),
            indices.advance.eq(now.go & (phase == Phase.ELEMENT)),
        ]
        for d in range(DIMENSIONS):
            m.d.comb += [
                indices.loaded[d].eq(self.i.payload.instruction[f"count{d}"]),
                indices.counts[d].eq(job.instruction[f"count{d}"]),
            ]
        self._next(m, now, indices.end)
        with m.If(now.load):
            self._begin(m, now)
            m.d.sync += [after_slow.eq(job.slow & begun), begun.eq(1)]

        flowing, addresses = self._walk(m, now, indices)
        self._issue(m, now, addresses)
        self._by_phase(m, now, indices, flowing)
        m.d.comb += self.o.payload.drain.eq(now.fresh & (~job.instruction.overlap | job.slow | after_slow))
        return m

    def _now(self) -> SimpleNamespace:
        """Return the state shared by all parts.

        Fields:
            job, phase, number: registers: the job, its current phase, and the index of the current step in the phase.
            fresh: no step of the job has been issued.
            go: a step is issued in this cycle.
            final: the current step is the last step of the job.
            last_result: the current step is the last RESULT step of the job.
            load: the next job is accepted in this cycle.
        """
        job = Signal(ElementwiseJobLayout, reset_less=True)
        return SimpleNamespace(
            job=job,
            phase=Signal(Phase, name="phase"),
            number=Signal.like(job.results, name="number"),
            fresh=Signal(name="fresh"),
            go=Signal(name="go"),
            final=Signal(name="final"),
            last_result=Signal(name="last_result"),
            load=Signal(name="load"),
        )

    def _next(self, m: Module, now, end: Value) -> None:
        """Advance to the next step when a step is issued, and from the last step of a phase to the next phase."""
        job, phase, number = now.job, now.phase, now.number
        results_next = Signal()
        following = Signal(Phase)  # the phase after the scalar loads
        m.d.comb += [
            following.eq(Mux(job.values, Phase.LOAD_VALUE, Phase.ELEMENT)),
            now.last_result.eq(number == job.results - 1),
            results_next.eq(end & (job.results != 0)),
            now.final.eq(Mux(phase == Phase.RESULT, now.last_result, (phase == Phase.ELEMENT) & end & ~results_next)),
        ]
        with m.If(now.go):
            m.d.sync += [now.fresh.eq(0), number.eq(number + 1)]
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
            with m.If(now.final):
                m.d.sync += self.o.valid.eq(0)

    def _begin(self, m: Module, now) -> None:
        new, phase = self.i.payload, now.phase
        m.d.sync += [
            now.job.eq(new),
            self.o.valid.eq(1),
            now.fresh.eq(1),
            now.number.eq(0),
            phase.eq(Mux(new.values, Phase.LOAD_VALUE, Phase.ELEMENT)),
        ]
        with m.If(new.loads0 | new.loads1):
            m.d.sync += phase.eq(Mux(new.loads0, Phase.LOAD_S0, Phase.LOAD_S1))

    def _walk(self, m: Module, now, indices: Indices) -> tuple[Signal, dict[str, Value]]:
        """Drive the address generators of all accesses.

        Return whether delayed writes have begun, and the address of each access.
        """
        job, phase, go, load, dimension = now.job, now.phase, now.go, now.load, indices.dimension
        element, result, value = (Signal(name=name) for name in ("element", "result", "value"))
        m.d.comb += [
            element.eq(go & (phase == Phase.ELEMENT)),
            result.eq(go & (phase == Phase.RESULT)),
            value.eq(go & (phase == Phase.LOAD_VALUE)),
        ]
        # A reduction writes one element per group: the address of dst does not move within a group.
        taken = Signal()
        m.d.comb += taken.eq(element & ~(job.reduces & (dimension < job.group)))

        # A delayed write lags by one row of dimension 0. After a row it moves along the dimension in which the reads
        # moved after the same row.
        flowing, left_along, late_dimension = Signal(), Signal(range(DIMENSIONS)), Signal(range(DIMENSIONS))
        m.d.comb += late_dimension.eq(Mux(indices.last, left_along, 0))
        with m.If(load):
            m.d.sync += flowing.eq(0)
        with m.Elif(element & indices.last):
            m.d.sync += [flowing.eq(1), left_along.eq(dimension)]

        moves = {
            "dst": (
                Mux(job.delayed, element & flowing, taken & job.writes) | (result & ~job.at_b),
                Mux(phase == Phase.RESULT, 0, Mux(job.delayed, late_dimension, dimension)),
            ),
            "a": (element, dimension),
            "b": ((element & job.reads_b) | value, Mux(phase == Phase.LOAD_VALUE, 0, dimension)),
        }
        addresses = {name: self._address(m, now, name, *move) for name, move in moves.items()}
        self._number(m, now, element, dimension)
        return flowing, addresses

    def _address(self, m: Module, now, name: str, advance: Value, dimension: Value) -> Value:
        m.submodules[name] = generator = ElementwiseAddressGenerator(ADDRESS_BITS, _ACCESS_STEP_BITS)
        m.d.comb += [
            generator.load.eq(now.load),
            generator.start.eq(self.i.payload.instruction[f"{name}_address"]),
            generator.advance.eq(advance),
            generator.dimension.eq(dimension),
        ]
        for d in range(DIMENSIONS):
            new, step = self.i.payload, Signal(signed(_ACCESS_STEP_BITS), name=f"{name}_step{d}", reset_less=True)
            elements = new.instruction[f"{name}_step{d}"]
            with m.If(now.load):
                m.d.sync += step.eq(Array(elements << size for size in range(3))[new[f"size_{name}"]])
            m.d.comb += generator.steps[d].eq(step)
        return generator.o

    def _number(self, m: Module, now, element: Value, dimension: Value) -> None:
        """Compute the element's index in its tensor, and its row-major position in the instruction."""
        m.submodules.index = index = ElementwiseAddressGenerator(64, 32)
        position = Signal(16)
        m.d.comb += [
            index.load.eq(now.load),
            index.start.eq(self.i.payload.instruction.index),
            index.advance.eq(element),
            index.dimension.eq(dimension),
            *(index.steps[d].eq(now.job.instruction[f"index_step{d}"]) for d in range(DIMENSIONS)),
            self.o.payload.step.index.eq(index.o),
            self.o.payload.step.position.eq(position),
        ]
        with m.If(now.load):
            m.d.sync += position.eq(0)
        with m.Elif(element):
            m.d.sync += position.eq(position + 1)

    def _issue(self, m: Module, now, addresses: dict[str, Value]) -> None:
        """Drive the fields of the step that are independent of the phase."""
        job, instruction, issue = now.job, now.job.instruction, self.o.payload
        step = issue.step
        m.d.comb += [step[name].eq(instruction[name]) for name in OF_INSTRUCTION]
        m.d.comb += [
            step.phase.eq(now.phase),
            step.number.eq(now.number),
            step.integer.eq(job.integer),
            step.uint32.eq(job.uint32),
            issue.write.partitions.eq(instruction.partitions),
            issue.write.last.eq(now.final),
            issue.interval.eq(job.interval),
        ]
        for name, place in {"a": issue.a, "b": issue.b, "dst": issue.write.place}.items():
            m.d.comb += [
                place.address.eq(addresses[name]),
                place.quadrant.eq(instruction[f"{name}_quadrant"]),
                place.storage.eq(instruction[f"{name}_storage"]),
                place.size.eq(job[f"size_{name}"]),
            ]

    def _by_phase(self, m: Module, now, indices: Indices, flowing: Value) -> None:
        """Drive the fields of the step that depend on the phase."""
        job, instruction, issue = now.job, now.job.instruction, self.o.payload
        step, a = issue.step, issue.a
        with m.Switch(now.phase):
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
                    step.first.eq(indices.first),
                    step.last.eq(indices.last),
                    step.stochastic.eq(instruction.stochastic),
                    step.writes.eq(Mux(job.delayed, flowing, job.writes & (indices.last | ~job.reduces))),
                    issue.reads_a.eq(job.reads_a),
                    issue.reads_b.eq(job.reads_b),
                ]
            with m.Case(Phase.RESULT):
                m.d.comb += [step.first.eq(now.number == 0), step.last.eq(now.last_result), step.writes.eq(1)]
                with m.If(job.at_b):
                    m.d.comb += [step.dst_dtype.eq(instruction.b_dtype), issue.write.place.eq(issue.b)]
            with m.Default():
                pass
