"""What the tests of queues share: records of bits, and a queue's model that says every port's value in every cycle."""

from collections import deque
from dataclasses import dataclass, field

from neuroncore_rtl.hdl.queue.queue import IN_FLIGHT
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import RECORD_BYTES, Engine, UpdateOp
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS
from neuroncore_rtl.spec.isa.fields import pack, width_of
from neuroncore_rtl.spec.isa.registry import INSTRUCTIONS

__all__ = ["OWN", "Item", "QueueModel", "beats", "holds", "whole"]

OWN = -1
"""Whose update it is: the NOP's, which no lane has."""


def beats(bits: int, error: int, size: int) -> list[dict]:
    """Return a record as the beats of `size` bytes that it comes in."""
    last = RECORD_BYTES // size - 1
    parts = ((bits >> 8 * size * place) % (1 << 8 * size) for place in range(last + 1))
    return [
        {"data": part, "place": place, "last": place == last, "error": error and place == last}
        for place, part in enumerate(parts)
    ]


def whole(bits: int, error: int) -> dict:
    """Return a record that comes at once."""
    return beats(bits, error, RECORD_BYTES)[0]


@dataclass
class Item:
    """A record: engine code, waits (semaphore, value), updates (op, semaphore, value), the bits of the instruction."""

    engine: int
    body: int
    waits: tuple = ()
    updates: tuple = ()
    address: int = 0
    error: bool = False

    @property
    def bits(self) -> int:
        """The whole record."""
        values = {name: 0 for name, _ in isa.HEADER_FIELDS} | {"engine": self.engine}
        for n, (semaphore, value) in enumerate(self.waits):
            values |= {f"wait{n}": 1, f"wait{n}_semaphore": semaphore, f"wait{n}_value": value}
        for n, (op, semaphore, value) in enumerate(self.updates):
            values |= {f"update{n}": int(op), f"update{n}_semaphore": semaphore, f"update{n}_value": value}
        return pack(isa.HEADER_FIELDS, values, "record") | self.body << isa.HEADER_BITS

    @property
    def is_nop(self) -> bool:
        """Whether the queue executes it itself."""
        return self.engine == Engine.QUEUE

    @property
    def changes(self) -> deque:
        """Its updates, without those that are none."""
        return deque(update for update in self.updates if update[0] != UpdateOp.NONE)

    def lane(self, lanes: int) -> int | None:
        """The lane of the queue in which it finishes; None if it is a NOP."""
        return None if self.is_nop else int(lanes > 1 and self.body & 3 == isa.LOAD_STATIONARY)


def holds(item: Item, values) -> bool:
    """Return whether all waits of a record hold."""
    return all(values[semaphore] >= value for semaphore, value in item.waits)


@dataclass
class Lane:
    """Records that the engine works on, what is left to update of each, and how many it has finished."""

    records: deque = field(default_factory=deque)
    left: deque = field(default_factory=deque)
    finished: int = 0

    @property
    def offers(self):
        """The update that is to be made next, if any."""
        return self.left[0][0] if self.finished and self.left[0] else None

    def start(self, item: Item):
        """Take a record."""
        self.records.append(item)
        self.left.append(item.changes)

    def leave(self):
        """Forget the oldest."""
        self.records.popleft()
        self.left.popleft()
        self.finished -= 1


class QueueModel:
    """What a queue does, cycle by cycle; `step` moves it on by what happened at its ports.

    Arguments:
        engine, lanes, records, refusal_latency: as of the queue.
    """

    def __init__(self, engine: Engine, lanes: int, records: int, refusal_latency: int = 0):
        self.engine = engine
        self.places = records
        self.lanes = [Lane() for _ in range(lanes)]
        self.blocks = deque()
        self.asked = deque()  # addresses of records that were asked for and not issued
        self.here = deque()  # records that came and were not issued
        self.next = 0  # of the first block, the record to ask for
        self.cleared = False
        self.own = deque()  # updates of the next record, if it is a NOP that waits for nothing
        self.kept = False  # one of them was on offer and was not taken
        self.turn = 0  # the lane whose update is made if both have one
        self.rung = 0
        self.uncounted = deque([0] * refusal_latency)  # records that have left, cycle by cycle
        self.counters = dict.fromkeys(isa.QUEUE_COUNTERS, 0)
        self.body_bits = width_of(INSTRUCTIONS[engine].layout)

    @property
    def passing(self) -> bool:
        """Whether the next record is a NOP that waits for nothing."""
        return self.cleared and self.here[0].is_nop

    def offer(self) -> tuple | None:
        """Return a NOP's update if it is on offer: it gives way to those of the lanes, unless it was there first."""
        return self.own[0] if self.own and (self.kept or not any(lane.offers for lane in self.lanes)) else None

    @property
    def chosen(self) -> int:
        """The lane whose update is on offer, if the NOP's is not: the one whose turn it is, if it has any."""
        return self.turn if self.lanes[self.turn].offers else (self.turn + 1) % len(self.lanes)

    def passes(self, updated) -> bool:
        """Return whether a NOP is passed in a cycle in which this update was taken, as of `step`."""
        return self.passing and len(self.own) == int(updated == OWN)

    @property
    def flying(self) -> int:
        """Records in flight."""
        return sum(len(lane.records) for lane in self.lanes)

    @property
    def room(self) -> int:
        """Blocks that can be rung."""
        return QUEUE_BLOCKS - len(self.blocks)

    @property
    def request(self) -> int | None:
        """The address that is asked for."""
        if not self.blocks or len(self.asked) == self.places:
            return None
        return self.blocks[0][0] + RECORD_BYTES * self.next

    @property
    def busy(self) -> bool:
        """Whether there is work."""
        return bool(self.blocks or self.asked or self.flying)

    def state(self, values) -> str:
        """Return the counter that counts this cycle."""
        if self.here:
            return "wait_engine" if self.cleared or holds(self.here[0], values) else "wait_semaphore"
        if self.blocks or self.asked:
            return "wait_fetch"
        return "executing" if self.flying else "idle"

    def oldest(self) -> int:
        """Return the address of the oldest record that has not left, as the watchdog is told it."""
        addresses = [lane.records[0].address for lane in self.lanes if lane.records] + list(self.asked)
        return addresses[0] if addresses else self.blocks[0][0] + RECORD_BYTES * self.next

    def step(self, values, *, rings=None, asked=False, came=None, issued=False, finished=(), updated=None, halt=False):
        """Move on by a cycle in which: a block was rung; the request was taken; a record came; the instruction was
        taken; these lanes were told to have finished; the update of this lane, or the NOP's (`OWN`), was taken."""
        self.counters[self.state(values)] += 1
        clears = self.here and not self.cleared and holds(self.here[0], values) and self.flying < IN_FLIGHT and not halt
        if self.offer() is None and any(lane.offers for lane in self.lanes):
            # Behind an update it is the other lane's turn; one that is on offer stays.
            self.turn = (self.chosen + (updated is not None)) % len(self.lanes)
        self.kept = self.offer() is not None and updated != OWN
        if updated == OWN:
            self.own.popleft()
        elif updated is not None:
            self.lanes[updated].left[0].popleft()
        leaving = [lane for lane in self.lanes if lane.finished and not lane.left[0]]
        for lane in leaving:
            lane.leave()
        self.uncounted.append(len(leaving) + bool(issued and self.passing))
        self.counters["records"] += self.uncounted.popleft()
        for number in finished:
            self.lanes[number].finished += 1
        if asked:
            self.asked.append(self.request)
            self.next += 1
            if self.next == self.blocks[0][1]:
                self.blocks.popleft()
                self.next = 0
        if issued:
            item = self.here.popleft()
            self.asked.popleft()
            if not item.is_nop:
                self.lanes[item.lane(len(self.lanes))].start(item)
        elif clears and self.here[0].is_nop:
            self.own = self.here[0].changes
        self.cleared = bool((self.cleared or clears) and not issued)
        if came is not None:
            self.here.append(came)
        if rings and rings[1]:
            self.blocks.append(rings)
            self.rung += rings[1]
