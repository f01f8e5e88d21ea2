"""Records as bits, and a cycle-accurate model of a queue with the value of every port."""

from collections import deque
from dataclasses import dataclass, field

from neuroncore_rtl.hdl.queue.queue import IN_FLIGHT
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import RECORD_BYTES, Cause, Engine, UpdateOp, fields, registry
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS

__all__ = ["OWN", "Item", "QueueModel", "beats"]

OWN = -1
"""Source of a NOP's update; the source of any other update is the index of its lane."""


def beats(bits: int, error: int, size: int = RECORD_BYTES) -> list[dict]:
    last = RECORD_BYTES // size - 1
    parts = ((bits >> 8 * size * place) % (1 << 8 * size) for place in range(last + 1))
    return [{"data": part, "place": n, "last": n == last, "error": error and n == last} for n, part in enumerate(parts)]


@dataclass
class Item:
    """A record: engine code, instruction bits (`body`), waits (semaphore, value), updates (op, semaphore, value)."""

    engine: int
    body: int
    waits: tuple = ()
    updates: tuple = ()
    address: int = 0
    error: bool = False

    @property
    def bits(self) -> int:
        values = dict.fromkeys(dict(isa.HEADER_FIELDS), 0) | {"engine": self.engine}
        for n, (semaphore, value) in enumerate(self.waits):
            values |= {f"wait{n}": 1, f"wait{n}_semaphore": semaphore, f"wait{n}_value": value}
        for n, (op, semaphore, value) in enumerate(self.updates):
            values |= {f"update{n}": int(op), f"update{n}_semaphore": semaphore, f"update{n}_value": value}
        return fields.pack(isa.HEADER_FIELDS, values, "record") | self.body << isa.HEADER_BITS

    @property
    def is_nop(self) -> bool:
        return self.engine == Engine.QUEUE

    @property
    def changes(self) -> deque:
        return deque(update for update in self.updates if update[0] != UpdateOp.NONE)

    def lane(self, lanes: int) -> int | None:
        return None if self.is_nop else int(lanes > 1 and self.body & 3 == isa.LOAD_STATIONARY)


@dataclass
class Lane:
    """Lane, an in-order stream of an engine: its issued records, their pending updates, and how many have finished."""

    records: deque = field(default_factory=deque)
    left: deque = field(default_factory=deque)
    finished: int = 0

    @property
    def offers(self):
        return self.left[0][0] if self.finished and self.left[0] else None


class QueueModel:
    """Model of a queue; the arguments are those of `Queue`."""

    def __init__(self, engine: Engine, lanes: int, records: int, refusal_latency: int = 0):
        self.engine = engine
        self.values = [0] * 256  # of the semaphores
        self.slots = records
        self.lanes = [Lane() for _ in range(lanes)]
        self.blocks = deque()
        self.requested = deque()  # addresses of records requested and not issued
        self.here = deque()  # records received and not issued
        self.next = 0  # index of the next record of the first block to request
        self.cleared = False
        self.halt = False  # no record becomes ready to issue, and blocks are discarded
        self.own = deque()  # updates of the next record if it is a NOP with satisfied waits
        self.kept = False  # an update of a NOP was on offer and was not accepted
        self.turn = 0  # lane with priority if both have an update
        self.rung = 0
        self.uncounted = deque([0] * refusal_latency)  # retired records by cycle, not yet counted
        self.launched = []  # addresses of the records that the engine got
        self.left = 0  # how many of these have retired
        self.error: tuple[int, int, int] | None = None  # cause, address and detail
        self.counters = dict.fromkeys(isa.QUEUE_COUNTERS, 0)
        self.body_bits = fields.width_of(registry.INSTRUCTIONS[engine].layout)

    @property
    def bad(self) -> bool:
        """Whether the next record is an error."""
        return bool(self.here) and (self.here[0].error or self.here[0].engine not in (self.engine, Engine.QUEUE))

    @property
    def waiting(self) -> bool:
        short = self.here and any(self.values[semaphore] < value for semaphore, value in self.here[0].waits)
        return bool(short) and not self.cleared and not self.bad

    @property
    def passing(self) -> bool:
        return self.cleared and self.here[0].is_nop

    def offer(self) -> tuple | None:
        """Return the offered update; lanes have priority over a NOP's update until the NOP's update is on offer."""
        return self.own[0] if self.own and (self.kept or not any(lane.offers for lane in self.lanes)) else None

    @property
    def next_lane(self) -> int:
        return self.turn if self.lanes[self.turn].offers else (self.turn + 1) % len(self.lanes)

    def passes(self, updated) -> bool:
        """Return whether a NOP retires in a cycle in which `updated` (as for `step`) was accepted."""
        return self.passing and len(self.own) == int(updated == OWN)

    @property
    def in_flight(self) -> int:
        return sum(len(lane.records) for lane in self.lanes)

    @property
    def room(self) -> int:
        return QUEUE_BLOCKS - len(self.blocks)

    @property
    def request(self) -> int | None:
        if not self.blocks or len(self.requested) == self.slots:
            return None
        return self.blocks[0][0] + RECORD_BYTES * self.next

    @property
    def busy(self) -> bool:
        return bool(self.blocks or self.requested or self.in_flight)

    @property
    def state(self) -> str:
        if self.here:
            return "wait_semaphore" if self.waiting else "wait_engine"
        if self.blocks or self.requested:
            return "wait_fetch"
        return "executing" if self.in_flight else "idle"

    def oldest(self) -> int:
        addresses = [lane.records[0].address for lane in self.lanes if lane.records] + list(self.requested)
        return addresses[0] if addresses else self.blocks[0][0] + RECORD_BYTES * self.next

    def _fails(self, updated, refused, report) -> tuple[int, int, int] | None:
        if refused:
            lane = self.lanes[updated]
            item, update = (self.here[0], self.own[0]) if updated == OWN else (lane.records[0], lane.left[0][0])
            return int(Cause.SEMAPHORE), item.address, update[1]
        if report and self.left == report["number"]:
            return report["cause"], self.launched[report["number"]], report["detail"]
        if self.bad and not self.in_flight:
            item = self.here[0]
            cause, detail = (Cause.FETCH, 0) if item.error else (Cause.ENGINE, item.engine)
            return int(cause), item.address, detail
        return None

    def step(self, rings, requested, received, issued, finished, updated, refused=False, report=None):
        """Advance by one cycle with the accepted block, the received record and the lanes that finish.

        `updated` is the lane of the accepted update, `OWN` for a NOP's, or None; `refused`: it is not made; `report` is
        the engine's error.
        """
        self.counters[self.state] += 1
        may_clear = self.in_flight < IN_FLIGHT and not self.halt and not self.error
        clears = may_clear and self.here and not self.cleared and not self.bad and not self.waiting
        self.error = self.error or self._fails(updated, refused, report)
        if self.offer() is None and any(lane.offers for lane in self.lanes):
            # After an accepted update the other lane has priority; an update on offer is not withdrawn.
            self.turn = (self.next_lane + (updated is not None)) % len(self.lanes)
        self.kept = self.offer() is not None and updated != OWN
        if updated == OWN:
            self.own.popleft()
        elif updated is not None:
            self.lanes[updated].left[0].popleft()
        retiring = [lane for lane in self.lanes if lane.finished and not lane.left[0]]
        for lane in retiring:
            lane.records.popleft()
            lane.left.popleft()
            lane.finished -= 1
        self.left += len(retiring)
        self.uncounted.append(len(retiring) + bool(issued and self.passing))
        self.counters["records"] += self.uncounted.popleft()
        for number in finished:
            self.lanes[number].finished += 1
        if requested:
            self.requested.append(self.request)
            self.next += 1
            if self.next == self.blocks[0][1]:
                self.blocks.popleft()
                self.next = 0
        if issued:
            item = self.here.popleft()
            self.requested.popleft()
            if not item.is_nop:
                lane = self.lanes[item.lane(len(self.lanes))]
                lane.records.append(item)
                self.launched.append(item.address)
                lane.left.append(item.changes)
        elif clears and self.here[0].is_nop:
            self.own = self.here[0].changes
        self.cleared = bool((self.cleared or clears) and not issued)
        if received is not None:
            self.here.append(received)
        if rings and rings[1] and not self.halt:
            self.blocks.append(rings)
            self.rung += rings[1]
