"""The queue of an engine: takes records from HBM in order, waits, issues, and updates semaphores when they finish."""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.primitives.counting import count
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.hdl.queue.errors import QueueError
from neuroncore_rtl.hdl.queue.in_flight import Flight, InFlight
from neuroncore_rtl.hdl.queue.prefetcher import PrefetchBlock, Prefetcher
from neuroncore_rtl.hdl.queue.record import RecordBeat
from neuroncore_rtl.hdl.queue.semaphores import Update, Wait
from neuroncore_rtl.hdl.queue.updates import Updates
from neuroncore_rtl.spec import isa, timing
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, QUEUE_COUNTERS, RECORD_BYTES, Engine, engines_taken
from neuroncore_rtl.spec.isa.engine import COUNTER_BITS, LANES, QUEUE_BLOCKS
from neuroncore_rtl.spec.isa.fields import width_of
from neuroncore_rtl.spec.isa.registry import INSTRUCTIONS

__all__ = ["IN_FLIGHT", "Queue", "QueueCounters"]

IN_FLIGHT = timing.QUEUE_RECORDS
"""Records that an engine has taken and that have not yet updated their semaphores, at most."""


QueueCounters = data.StructLayout({name: COUNTER_BITS for name in QUEUE_COUNTERS})
"""What a queue counts since reset, as `spec.isa.QUEUE_COUNTERS` says. A record that waits for nothing costs a cycle of
wait_engine for the look at its semaphores, and one for the handshake."""


class Queue(wiring.Component):
    """Executes blocks of records in order; as many as `IN_FLIGHT` may be in the engine at once.

    A record is issued `WAIT_LATENCY` cycles after its last semaphore was updated, and a record every two cycles if
    nothing waits. A semaphore is updated two cycles after the engine has finished, if its turn comes at once.

    A NOP is not issued but passed, by the queue itself: `WAIT_LATENCY` cycles after its last semaphore was updated, or
    when its own updates are done, the first one in that cycle. Those of records in flight come first.

    Errors come in the order of the program: an instruction's when all records before it have left, a record's that
    cannot be fetched (FETCH) or is for another engine (ENGINE) likewise, without looking at its semaphores. A refused
    update (SEMAPHORE) is left out, and those behind it are done.

    Arguments:
        engine: whose records these are.
        lanes: 2 for the tensor engine, where a LoadStationary (lane 1) may finish before an earlier MultiplyMoving
            (lane 0); else 1.
        records: how many are fetched ahead, the one that waits or is issued among them.
        size: bytes of a beat of a record.
        refusal_latency: cycles from an update that is taken to `update_refused`, and how much later records that have
            left are counted; 0 or 1.

    Ports:
        blocks: doorbell. places: blocks that it takes without waiting. After an error it takes and forgets all.
        request: HBM address of a record to fetch; there is room for it. record: what came, in order, beat by beat.
        wait: what the next record waits for; wait_satisfied: both hold, in the same cycle.
        issue: the instruction, to the engine: the lowest bits of the body, as wide as the engine's layout.
        completions: a pulse of each lane: the engine has finished the oldest record of that lane.
        update: to the semaphores; update_refused: what is taken in this cycle, or was `refusal_latency`
            cycles ago, is not done.
        engine_error: see :class:`hdl.primitives.engine_error.DetailedError`.
        error: the queue's first error, until reset. halt: no further record is issued, but for one that is on offer.
        issued, issued_address: the engine takes a record in this cycle, or a NOP is passed. passed: a NOP, which has
            retired by that. retired, retired_address: of each lane, the engine has finished a record in this cycle.
        busy: there is work. waiting: the next record waits for a semaphore. address: of that record, or else of the
            oldest that has not left (the lower lane's). progress: something happens in this cycle, or a NOP is being
            passed; but for updates, of which the semaphores know.
        counters: :data:`QueueCounters`. retired_count: records that have left; rung: records of all blocks taken.
        oldest: address of the oldest record that has not left, even if the next one waits; of a COLLECTIVE only.
    """

    WAIT_LATENCY = 2
    """Cycles from an update that is taken to the instruction that waited for it at `issue`."""

    def __init__(
        self, engine: Engine, lanes: int = 1, records: int = 4, refusal_latency: int = 0, size: int = RECORD_BYTES
    ):
        if not 1 <= lanes <= LANES[engine]:
            raise ValueError(f"lanes must be 1, or 2 for the tensor engine, not {lanes!r}")
        self.engine = engine
        self.lanes = lanes
        self.records = records
        self.refusal_latency = refusal_latency
        self.size = size
        self.body_bits = width_of(INSTRUCTIONS[engine].layout)
        oldest = {"oldest": Out(HBM_ADDRESS_BITS)} if engine == Engine.COLLECTIVE else {}
        super().__init__(
            {
                "blocks": In(stream.Signature(PrefetchBlock)),
                "places": Out(range(QUEUE_BLOCKS + 1)),
                "request": Out(stream.Signature(HBM_ADDRESS_BITS)),
                "record": In(stream.Signature(RecordBeat(size), always_ready=True)),
                "wait": Out(data.ArrayLayout(Wait, 2)),
                "wait_satisfied": In(1),
                "issue": Out(stream.Signature(self.body_bits)),
                "completions": In(lanes),
                "update": Out(stream.Signature(Update)),
                "update_refused": In(1),
                "engine_error": In(DetailedError),
                "error": Out(QueueError),
                "halt": In(1),
                "issued": Out(1),
                "issued_address": Out(HBM_ADDRESS_BITS),
                "passed": Out(1),
                "retired": Out(lanes),
                "retired_address": Out(HBM_ADDRESS_BITS).array(lanes),
                "busy": Out(1),
                "waiting": Out(1),
                "address": Out(HBM_ADDRESS_BITS),
                "progress": Out(1),
                "counters": Out(QueueCounters),
                "retired_count": Out(32),
                "rung": Out(32),
                **oldest,
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.prefetcher = self._prefetcher = prefetcher = Prefetcher(self.body_bits, self.records, self.size)
        m.submodules.updates = self._updates = Updates()  # of a NOP
        self._bad, self._cleared = Signal(), Signal()  # the next record is not one of ours; it waits for nothing
        self._given = Signal()  # the engine takes it
        self._flying = Signal(range(IN_FLIGHT + 1))
        self._left = Signal(range(2 * IN_FLIGHT))  # of those it was given, modulo its range
        wiring.connect(m, wiring.flipped(self.blocks), prefetcher.blocks)
        wiring.connect(m, prefetcher.request, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.record), prefetcher.record)
        m.d.comb += [
            prefetcher.halt.eq(self.halt),
            self.places.eq(prefetcher.places),
            self.rung.eq(prefetcher.rung),
            prefetcher.head.ready.eq(self.issued),
            self.issued_address.eq(prefetcher.address),
        ]
        head = prefetcher.head.payload
        self._issue(m, head)
        lanes = self._fly(m, head)
        self._report(m, head, self._update(m, lanes))
        self._observe(m, lanes, prefetcher.coming, prefetcher.next_address)
        return m

    def _issue(self, m: Module, head):
        """Look at the semaphores once a cycle until both waits hold; then offer the instruction until it is taken."""
        header = head.header
        engine, itself = engines_taken(self.engine)
        ready, nop = Signal(), Signal()
        m.d.comb += [
            nop.eq(header.engine == itself),
            self._bad.eq(head.error | ((header.engine != engine) & ~nop)),
            ready.eq(self._prefetcher.head.valid & ~self._bad & ~self._cleared),
            self.waiting.eq(ready & ~self.wait_satisfied),
            self.issue.valid.eq(self._cleared & ~nop),
            self.issue.payload.eq(head.body),
            self._given.eq(self.issue.valid & self.issue.ready),
            self._updates.valid.eq(self._cleared & nop),
            self.passed.eq(self._updates.done),
            self.issued.eq(self._given | self.passed),
        ]
        for number, wait in enumerate(self.wait):
            m.d.comb += [
                wait.on.eq(header[f"wait{number}"]),
                wait.semaphore.eq(header[f"wait{number}_semaphore"]),
                wait.value.eq(header[f"wait{number}_value"]),
            ]
        with m.If(self.issued):
            m.d.sync += self._cleared.eq(0)
        with m.Elif(ready & self.wait_satisfied & (self._flying != IN_FLIGHT) & ~self.halt & ~self.error.valid):
            m.d.sync += self._cleared.eq(1)

    def _fly(self, m: Module, head) -> list[InFlight]:
        """Remember, lane by lane, what the engine works on."""
        lane = (head.body[:2] == isa.LOAD_STATIONARY) & (self.lanes > 1)
        record = Signal(Flight)
        m.d.comb += record.address.eq(self.issued_address)
        for number, update in enumerate(record.updates):
            m.d.comb += [
                update.op.eq(head.header[f"update{number}"]),
                update.semaphore.eq(head.header[f"update{number}_semaphore"]),
                update.value.eq(head.header[f"update{number}_value"]),
            ]
        m.d.comb += self._updates.updates.eq(record.updates)
        lanes = []
        for number in range(self.lanes):
            m.submodules[f"in_flight{number}"] = flight = InFlight(IN_FLIGHT)
            m.d.comb += [
                flight.start.eq(self._given & (lane == number)),
                flight.record.eq(record),
                flight.finish.eq(self.completions[number]),
                self.retired[number].eq(self.completions[number]),
                self.retired_address[number].eq(flight.finished_address),
            ]
            lanes.append(flight)
        self._leaving = left = sum(flight.leaves for flight in lanes)
        m.d.sync += [
            self._flying.eq(self._flying + self._given - left),
            self._left.eq(self._left + left),
        ]
        return lanes

    def _update(self, m: Module, lanes: list[InFlight]) -> Value:
        """Make the updates of the lanes in turns; return the address of the record whose update is at the port.

        Those of a NOP come when the lanes have none, which is soon, as nothing is issued before the NOP is passed.
        """
        own, flown = self._updates.update, stream.Signature(Update).create()
        turn, chosen = Signal(), Signal()
        kept, passing = Signal(), Signal()  # a NOP's update was on offer, and is
        address = Signal(HBM_ADDRESS_BITS)
        if self.lanes > 1:
            first, second = (flight.update.valid for flight in lanes)
            m.d.comb += chosen.eq(Mux(turn, second, ~first & second))
            with m.If(flown.valid & ~passing):
                m.d.sync += turn.eq(chosen ^ self.update.ready)  # an update that is on offer stays
        with m.Switch(chosen):
            for number, flight in enumerate(lanes):
                with m.Case(number):
                    m.d.comb += [
                        flown.valid.eq(flight.update.valid),
                        flown.payload.eq(flight.update.payload),
                        flight.update.ready.eq(self.update.ready & ~passing),
                        address.eq(flight.oldest),
                    ]
        m.d.sync += kept.eq(passing & ~self.update.ready)
        m.d.comb += [
            passing.eq(own.valid & (kept | ~flown.valid)),
            own.ready.eq(self.update.ready & passing),
            self.update.valid.eq(own.valid | flown.valid),
            self.update.payload.eq(Mux(passing, own.payload, flown.payload)),
        ]
        return Mux(passing, self.issued_address, address)

    def _report(self, m: Module, head, updating: Value):
        """Keep the first error."""
        # Addresses by the engine's number of a record; it has no more than these at once.
        m.submodules.issued_addresses = addresses = memory.Memory(shape=HBM_ADDRESS_BITS, depth=IN_FLIGHT, init=[])
        write, read = addresses.write_port(), addresses.read_port(domain="comb")
        number = Signal(range(IN_FLIGHT))
        refused = [
            delayed(m, value, self.refusal_latency, name)
            for value, name in ((updating, "updating"), (self.update.payload.semaphore, "updated"))
        ]
        m.d.comb += [
            write.en.eq(self._given),
            write.addr.eq(number),
            write.data.eq(self.issued_address),
            read.addr.eq(self.engine_error.number),
        ]
        m.d.sync += number.eq(number + self._given)

        def report(cause, address, detail):
            m.d.sync += [
                self.error.valid.eq(1),
                self.error.cause.eq(cause),
                self.error.address.eq(address),
                self.error.detail.eq(detail),
            ]

        with m.If(~self.error.valid):
            with m.If(self.update_refused):
                report(isa.Cause.SEMAPHORE, *refused)
            with m.Elif(self.engine_error.valid & (self._left == self.engine_error.number[: len(self._left)])):
                report(self.engine_error.cause, read.data, self.engine_error.detail)
            with m.Elif(self._prefetcher.head.valid & self._bad & (self._flying == 0)):
                with m.If(head.error):
                    report(isa.Cause.FETCH, self.issued_address, 0)
                with m.Else():
                    report(isa.Cause.ENGINE, self.issued_address, head.header.engine)

    def _observe(self, m: Module, lanes: list[InFlight], coming, next_address):
        """Count cycles, and say what there is to do."""
        flying = self._flying != 0
        oldest = next_address
        for flight in reversed(lanes):
            oldest = Mux(flight.busy, flight.oldest, oldest)
        if "oldest" in self.signature.members:
            m.d.comb += self.oldest.eq(oldest)
        m.d.comb += [
            self.busy.eq(coming | flying),
            self.address.eq(Mux(self.waiting, next_address, oldest)),
            self.progress.eq(
                (self.blocks.valid & self.blocks.ready)
                | (self.request.valid & self.request.ready)
                | (self.record.valid & self.record.payload.last)
                | self._given
                | self._updates.valid
                | self.completions.any()
            ),
        ]
        doing = {
            "wait_semaphore": self.waiting,
            "wait_engine": self._prefetcher.head.valid,
            "wait_fetch": coming,
            "executing": flying,
            "idle": Const(1),
        }
        retires = Signal(range(self.lanes + 2))
        m.d[("sync" if self.refusal_latency else "comb")] += retires.eq(self._leaving + self.passed)
        amounts, before = {"records": retires}, Const(0)
        for name, does in doing.items():
            amounts[name] = does & ~before
            before = before | does
        count(m, self.counters, **amounts)
        m.d.comb += self.retired_count.eq(self.counters.records)
