"""Queue of an engine: fetches records in order, waits for semaphores, issues instructions and updates semaphores."""

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
"""Maximum number of records that an engine has accepted and that have not made their updates yet."""


QueueCounters = data.StructLayout({name: COUNTER_BITS for name in QUEUE_COUNTERS})
"""Counters of a queue since reset; see `spec.isa.QUEUE_COUNTERS`.

A record that waits for no semaphore still counts two wait_engine cycles: one for the semaphore check and one for the
handshake.
"""


class Queue(wiring.Component):
    """Queue of an engine: executes blocks of records in order, with up to `IN_FLIGHT` records in the engine.

    Timing:
    - A record is issued `WAIT_LATENCY` cycles after the last update that it waits for.
    - Without waits, one record is issued every two cycles.
    - A semaphore is updated two cycles after the engine has finished, if the update is granted immediately.

    The queue executes a NOP itself. A NOP offers its first update in the cycle in which another record would be issued.
    It is issued and retires in that cycle if it has no updates, otherwise with its last update. Updates of records in
    flight have priority.

    Errors are reported in program order: an instruction's error waits until all earlier records have retired and made
    their updates. So does the error of a record that cannot be fetched (FETCH) or belongs to another engine (ENGINE);
    the semaphores of such a record are not checked. A refused update (SEMAPHORE) is skipped; later updates are made.

    Arguments:
        engine: the engine that executes the records.
        lanes: 2 for the tensor engine, where a LoadStationary (lane 1) may finish before an earlier MultiplyMoving
            (lane 0); otherwise 1.
        records: maximum number of records fetched ahead, with the one that waits or is being issued.
        size: bytes of a beat of a record.
        refusal_latency: cycles from an accepted update to `update_refused`, and delay of `retired_count`; 0 or 1.

    Ports:
        blocks: doorbell; after an error, blocks are accepted and discarded.
        places: see `Prefetcher`.
        request: HBM address of a record to fetch.
        record: beats of these records, in order.
        wait: the two semaphore waits of the next record.
        wait_satisfied: both waits at `wait` are satisfied, in the same cycle.
        issue: the instruction for the engine: low bits of the record's body.
        completions: one bit per lane, a pulse when the engine has finished the oldest record of that lane.
        update: semaphore updates of finished records.
        update_refused: the update accepted in this cycle, or `refusal_latency` cycles ago, is not made.
        engine_error: see `hdl.primitives.engine_error.DetailedError`.
        error: first error of the queue, held until reset.
        halt: while set, no further record is issued, except a record that `issue` already offers.
        issued: the engine accepts a record, or the queue executes a NOP, in this cycle.
        passed: the issued record is a NOP, which retires in this cycle.
        retired: one bit per lane, set when the engine finishes a record.
        issued_address, retired_address: HBM addresses of the records that `issued` and `retired` report.
        busy: the queue has a record that has not retired.
        waiting: the next record waits for a semaphore.
        address: HBM address of the waiting record; if none waits, of the oldest in flight, lane 0 first.
        progress: the queue makes progress in this cycle, or a NOP makes its updates. Updates of other records do not
            count here; `Semaphores.updated` reports them.
        counters: `QueueCounters`.
        retired_count: number of records that have retired and made their updates.
        rung: see `Prefetcher`.
        oldest: HBM address of the oldest record in flight; only for COLLECTIVE.
    """

    WAIT_LATENCY = 2
    """Cycles from an accepted semaphore update to the offer of the instruction that waits for it at `issue`."""

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
        m.submodules.updates = self._updates = Updates()  # updates of a NOP
        self._bad, self._cleared = Signal(), Signal()  # the next record is an error; its waits are satisfied
        self._given = Signal()  # the engine accepts the next record
        self._flying = Signal(range(IN_FLIGHT + 1))
        self._left = Signal(range(2 * IN_FLIGHT))  # records that have made their updates, modulo its range
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
        """Arbitrate the semaphore updates of retired records, round robin over the lanes.

        Return the HBM address of the record with the granted update.

        Updates of a NOP are made when no lane has an update. The NOP does not starve: no record is issued before the
        NOP has retired, so the lanes run out of updates.
        """
        own, flown = self._updates.update, stream.Signature(Update).create()
        turn, chosen = Signal(), Signal()
        kept, passing = Signal(), Signal()  # a NOP's update was offered in the last cycle; is offered now
        address = Signal(HBM_ADDRESS_BITS)
        if self.lanes > 1:
            first, second = (flight.update.valid for flight in lanes)
            m.d.comb += chosen.eq(Mux(turn, second, ~first & second))
            with m.If(flown.valid & ~passing):
                m.d.sync += turn.eq(chosen ^ self.update.ready)  # an offered update must not change
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
        # HBM addresses by the engine's record number; it has at most IN_FLIGHT records at the same time.
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
