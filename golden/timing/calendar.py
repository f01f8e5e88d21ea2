"""Bank reservation tables ("calendars"): which requesters have which bank of a memory in which cycle.

An access reserves its bank in its first cycle in which no requester of higher priority has it. Priorities from the
highest: moving operands of the array, vector engine, scalar engine, then weights and the line ports of the DMA engines,
which share a bank round robin.

Accesses are reserved when they become known, not in the order of their cycles. Hence three rules:

1. A late reservation does not move earlier ones of lower priority: their times are then too optimistic. Requesters
   therefore reserve only a few cycles ahead.
2. A round-robin requester may find its bank reserved by another one that has lower precedence in this cycle. Both then
   keep the cycle. The other one owes a stall cycle, its debt, which it pays before its next access.
3. Lines that a port writes to SBUF can wait in a buffer, where later lines overtake them.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from neuroncore_rtl.spec.config import PSUM_BANKS, Config

__all__ = [
    "FIRST_STEP", "LAST_STEP", "LAST_WRITE", "NEXT_FIRST", "NEXT_OFFER", "SCALAR", "SHARING", "UNSHARED", "VECTOR",
    "Accesses", "Calendars", "ElementwiseProgress", "LinePort", "Loads", "Moves", "bank_places", "begin_steps",
    "buffered_lines", "columns", "line_accesses", "load_steps", "new_calendar", "new_owners", "slots", "steps",
]  # fmt: skip

_WINDOW = 1 << 14
"""Cycles that a table covers, a power of two."""

ARRAY, VECTOR, SCALAR, _LINE, _PORT = 0, 8, 16, 24, 32
"""First bit of each priority in a reservation: a bit per bank for array, vector engine, scalar engine, and weights and
line ports together; then a bit per line port.
"""

UNSHARED = _PORT
"""Value of `sharing`, below all priorities, if no requesters share a port."""

SHARING = SCALAR, VECTOR
"""Highest priority that shares the one PSUM port, for reads and for writes; all lower priorities share it too."""

_BITS = 36

_BANKS = 8
"""Maximum number of banks of a memory. A literal, as Numba's cache does not notice changes of other files."""

assert PSUM_BANKS == _BANKS == Config.RANGES["sbuf_banks"][1]


def bank_places(config: Config) -> np.ndarray:
    """Return the shift and the mask that extract the bank from an address: first both of SBUF, then both of PSUM."""
    line, bank = config.line_bytes.bit_length() - 1, config.psum_bank.bit_length() - 1
    return np.array([line, config.sbuf_banks - 1, bank, config.psum_banks - 1], np.int64)


def new_calendar() -> np.ndarray:
    """Return an empty reservation table: one word per cycle of the window, with the cycle and its reservation bits."""
    return np.full(_WINDOW, -1, np.int64)


def new_owners() -> np.ndarray:
    """Return an empty table: the requester that has reserved each bank of SBUF in each cycle of the window."""
    return np.zeros((_WINDOW, _BANKS), np.uint8)


@njit(cache=True)
def _reserved(calendar, cycle):
    entry = calendar[cycle & (_WINDOW - 1)]
    return entry & ((1 << _BITS) - 1) if entry >> _BITS == cycle else 0


@njit(cache=True)
def _reserve(calendar, cycle, bits):
    place = cycle & (_WINDOW - 1)
    entry = calendar[place]
    calendar[place] = entry | bits if entry >> _BITS == cycle else cycle << _BITS | bits


@njit(cache=True)
def _higher_priority(priority, bank, sharing):
    bits = bank
    for other in range(VECTOR, priority, _BANKS):
        bits |= (1 if other >= sharing else bank) << other
    return bits


@njit(cache=True)
def _wins_turn(first, second, cycle, count):
    turn = cycle % count
    return not first < turn <= second if first < second else second < turn <= first


class LinePort(NamedTuple):
    """Line port (the DMA engines' port to SBUF and PSUM) with the reservation tables of its accesses.

    Arguments:
        ports: reservation table of SBUF, which also records the accesses of line ports, even those to PSUM.
        owners: round-robin requester of each SBUF bank in each cycle.
        sharing: in PSUM, the highest priority that shares the one access per cycle with lower ones; UNSHARED in SBUF.
        patience: stall cycles after which an access of the port has priority over the engines.
    """

    calendar: np.ndarray
    ports: np.ndarray
    owners: np.ndarray
    debts: np.ndarray
    port: int
    number: int
    sharing: int
    patience: int


class Accesses(NamedTuple):
    """Accesses of a copy through a line port.

    `banks` has the bank of each access of the copy. `first` and `count` select the accesses to reserve, spread evenly
    over `cycles` from `begin` on, at least `interval` apart. No access is reserved from cycle `until` on.
    """

    banks: np.ndarray
    first: int
    count: int
    begin: int
    cycles: int
    interval: int
    until: int


@njit(cache=True)
def line_accesses(line, accesses):
    """Reserve accesses of a `LinePort`; return their number, the cycle of the last one, and the total stall cycles."""
    calendar, ports, owners, debts, port, number, sharing, patience = line
    banks, first, count, begin, cycles, interval, until = accesses
    cycle, waited, port_bit, shared = begin - 1, 0, 1 << (_PORT + port), sharing < UNSHARED
    while debts[number]:
        cycle += 1
        if _reserved(ports, cycle) & port_bit == 0:
            _reserve(ports, cycle, port_bit)
            debts[number] -= 1
    for done in range(count):
        if cycle >= until:
            return done, cycle, waited
        cycle = max(cycle + (interval if done else 1), begin + done * cycles // count)
        bank = 1 << banks[first + done]
        engines, bits = _higher_priority(_LINE, bank, sharing), (1 if shared else bank) << _LINE
        remaining = patience
        while True:
            reserved = _reserved(calendar, cycle)
            if _reserved(ports, cycle) & port_bit == 0:
                if reserved & bits == 0 and (reserved & engines == 0 or remaining == 0):
                    break
                owner = owners[cycle & (_WINDOW - 1), banks[first + done]]
                if not shared and reserved & bits and _wins_turn(number, owner, cycle, len(debts)):
                    debts[owner] += 1
                    break
                # A stalled request blocks its port.
                _reserve(ports, cycle, port_bit)
                remaining -= remaining > 0
            waited += 1
            cycle += 1
        _reserve(calendar, cycle, bits)
        _reserve(ports, cycle, port_bit)
        if not shared:
            owners[cycle & (_WINDOW - 1), banks[first + done]] = number
    return count, cycle, waited


@njit(cache=True)
def buffered_lines(calendar, buffer, accesses, port, patience):
    """Reserve the SBUF writes of a line port. Lines with a busy bank wait in a buffer; later lines overtake them.

    `buffer` has the write cycle of the line in each slot: one slot more than in hardware, for the line at the port.
    After `patience` cycles an accepted line has priority over the engines.

    Return the number of accepted lines, the cycle of the last acceptance, the stall cycles before acceptance, and the
    cycle of the last write.
    """
    banks, first, count, begin, cycles, interval, until = accesses
    accepted, waited, written, port_bit = begin - 1, 0, begin, 1 << (_PORT + port)
    for done in range(count):
        if accepted >= until:
            return done, accepted, waited, written
        due, place = max(accepted + (interval if done else 1), begin + done * cycles // count), buffer.argmin()
        accepted = max(due, buffer[place])
        waited += accepted - due
        bank = 1 << banks[first + done]
        engines, cycle = _higher_priority(_LINE, bank, UNSHARED), accepted
        while True:
            reserved = _reserved(calendar, cycle)
            if reserved & (bank << _LINE | port_bit) == 0 and (reserved & engines == 0 or cycle - accepted >= patience):
                break
            cycle += 1
        _reserve(calendar, cycle, bank << _LINE | port_bit)
        buffer[place] = cycle
        written = max(written, cycle)
    return count, accepted, waited, written


class Calendars(NamedTuple):
    """Reservation tables of SBUF and PSUM, for reads and for writes, and the shifts and masks of `bank_places`."""

    sbuf_reads: np.ndarray
    psum_reads: np.ndarray
    sbuf_writes: np.ndarray
    psum_writes: np.ndarray
    places: np.ndarray


class Moves(NamedTuple):
    """Timing of the columns that a MultiplyMoving reads from SBUF and accumulates in PSUM, one per cycle.

    Arguments:
        begin: cycle of the first column.
        count, address, stride: number, byte address and byte stride of the columns in SBUF.
        place: PSUM address of the results, in words.
        accumulate: whether each column also reads PSUM.
        to_read, to_write: cycles from a column's read in SBUF to its read, and to its write, in PSUM.
    """

    begin: int
    count: int
    address: int
    stride: int
    place: int
    accumulate: bool
    to_read: int
    to_write: int


@njit(cache=True)
def columns(calendars, moves):
    """Reserve the banks that the columns of a MultiplyMoving access; the columns never stall."""
    reads, psum_reads, _, psum_writes, places = calendars
    begin, count, address, stride, place, accumulate, to_read, to_write = moves
    before = -1
    bank = 1 << (place >> (places[2] - 2) & places[3])
    for number in range(count):
        word = (address + number * stride) >> 2
        if word != before:
            _reserve(reads, begin + number, 1 << (word >> (places[0] - 2) & places[1]))
            before = word
        if accumulate:
            _reserve(psum_reads, begin + number + to_read, bank)
        _reserve(psum_writes, begin + number + to_write, bank)


class Loads(NamedTuple):
    """Timing of a LoadStationary, which reads `count` steps of weights from SBUF, the first in cycle `begin` or later.

    `address` and `step` are the byte address of the first step, and the bytes between steps, which are at least
    `interval` cycles apart. After `patience` stall cycles a step has priority over the engines.
    """

    begin: int
    count: int
    address: int
    step: int
    interval: int
    patience: int


@njit(cache=True)
def load_steps(calendar, owners, debts, places, loads):
    """Reserve the SBUF reads of a LoadStationary (round-robin requester 0); return the cycle of its last step."""
    begin, count, address, step, interval, patience = loads
    cycle = begin - interval + debts[0]
    debts[0] = 0
    for number in range(count):
        cycle += interval
        bank = (address + number * step) >> places[0] & places[1]
        engines, bits = _higher_priority(_LINE, 1 << bank, UNSHARED), 1 << bank << _LINE
        remaining = patience
        while True:
            reserved = _reserved(calendar, cycle)
            if reserved & engines == 0 or remaining == 0:
                if reserved & bits == 0:
                    break
                owner = owners[cycle & (_WINDOW - 1), bank]
                if _wins_turn(0, owner, cycle, len(debts)):
                    debts[owner] += 1
                    break
            remaining -= remaining > 0
            cycle += 1
        _reserve(calendar, cycle, bits)
        owners[cycle & (_WINDOW - 1), bank] = 0
    return cycle


@njit(cache=True)
def _reserve_column(calendar, places, cycle, access, address, priority, sharing):
    """Reserve an engine's access to one element of every partition, from `cycle` on; return the cycle of the access."""
    memory = 2 if access[1] else 0
    bank = 1 << (address >> places[memory] & places[memory + 1])
    if not access[1]:
        sharing = UNSHARED
    bits = _higher_priority(priority, bank, sharing)
    while _reserved(calendar, cycle) & bits:
        cycle += 1
    _reserve(calendar, cycle, (1 if priority >= sharing else bank) << priority)
    return cycle


LAST_STEP, NEXT_STEP, LAST_WRITE, FIRST_STEP, STEP, RESULTS, NEXT_OFFER, NEXT_FIRST = 0, 1, 2, 3, 4, 5, 6, 7
_INDEX, _ROWS, _RING = 8, 12, 24
"""Indices into an instruction's state: cycle of the last step, earliest cycle of the next step, cycles of the last
write and of the first step, number of the next step, number of writes, earliest ticks of the next step and of the next
instruction in a paced engine; then element indices, addresses of a, b and dst for each dimension, cycles of the last
`depth` writes.
"""


@njit(cache=True)
def begin_steps(first, written, depth, a, b, dst):
    """Return the state of an element-wise instruction before its first step.

    Its first read is in cycle `first` at the earliest; the previous instruction's last write is in `written`; at most
    `depth` results are in flight. Each of a, b and dst is an array: 1 if the tensor exists, 1 if it is in PSUM, its
    address, four steps in bytes, outermost first.
    """
    state = np.zeros(_RING + depth, np.int64)
    state[LAST_STEP], state[NEXT_STEP], state[LAST_WRITE], state[FIRST_STEP] = first - 1, first, written, -1
    for d in range(4):
        state[_ROWS + d], state[_ROWS + 4 + d], state[_ROWS + 8 + d] = a[2], b[2], dst[2]
    state[_RING:] = -1
    return state


class ElementwiseProgress(NamedTuple):
    """Progress of an element-wise instruction; for `state`, updated in place, and the operands see `begin_steps`.

    `offered` is the cycle of the first step without stalls: in a paced engine time passes while that step stalls.
    `plan` is a `golden.timing.plan.Plan` as a plain tuple: Numba's cache does not notice changes of other files.
    """

    state: np.ndarray
    plan: tuple[int, ...]
    shape: np.ndarray
    a: np.ndarray
    b: np.ndarray
    dst: np.ndarray
    offered: int


@njit(cache=True)
def steps(calendars, priority, until, walk):
    """Reserve memory cycles for the steps that begin before cycle `until`; return whether all steps are reserved."""
    sbuf_reads, psum_reads, sbuf_writes, psum_writes, places = calendars
    state, plan, shape, a, b, dst, offered = walk
    before, behind, interval, delay, depth, group, silent, ticks, start, pace, readout, least, access = plan
    cycle, next_cycle, written, first, step, results = state[0], state[1], state[2], state[3], state[4], state[5]
    index, rows = state[_INDEX:_ROWS], state[_ROWS:_RING]
    next_offer, next_first = state[6], state[7]
    a_reads, b_reads = (psum_reads if a[1] else sbuf_reads), (psum_reads if b[1] else sbuf_reads)
    dst_writes = psum_writes if dst[1] else sbuf_writes
    both = a[0] and b[0] and not a[1] and not b[1]
    total = shape[0] * shape[1] * shape[2] * shape[3]
    end = before + total + behind
    while step < end and cycle < until:
        number = step - before
        element = 0 <= number < total
        arrival = cycle + 1
        if ticks:
            # Times of the engine's own clock, in ticks since the start of the run; a step counts from its offer.
            if step == 0:
                next_offer = max(next_offer, next_first)
                arrival = offered
            arrival = max(arrival, next_offer // ticks)
            next_offer = max(next_offer, arrival * ticks)
            if step == 0:
                next_first = next_offer + least
                next_offer += start
            if element:
                next_offer += pace
            if number == total - 1:
                next_first = max(next_first, arrival * ticks) + readout
                next_offer += readout
            if step == end - 1:
                next_offer += access
            if step == 0:
                arrival = max(arrival, cycle + 1)
        if element:
            if b[0]:
                arrival = _reserve_column(b_reads, places, arrival, b, rows[7], priority, SHARING[0])
            if a[0]:
                earliest = max(arrival + 1, next_cycle) if both else cycle + 1
                arrival = max(arrival, _reserve_column(a_reads, places, earliest, a, rows[3], priority, SHARING[0]))
        writes = number >= total or (element and number >= silent and (number + 1) % group == 0)
        cycle = max(arrival, next_cycle)
        if writes:
            place = _RING + results % depth
            cycle = max(cycle, state[place] + 1)
            written = max(cycle + delay, written + 1)
            if element:
                written = _reserve_column(dst_writes, places, written, dst, rows[11], priority, SHARING[1])
            state[place] = written
            results += 1
        next_cycle = cycle + interval
        if first < 0:
            first = cycle
        step += 1
        if not element:
            continue
        for d in range(3, -1, -1):
            index[d] += 1
            if index[d] < shape[d]:
                rows[d] += a[3 + d]
                rows[4 + d] += b[3 + d]
                rows[8 + d] += dst[3 + d]
                for e in range(d + 1, 4):
                    rows[e], rows[4 + e], rows[8 + e] = rows[d], rows[4 + d], rows[8 + d]
                    index[e] = 0
                break
    state[0], state[1], state[2], state[3], state[4], state[5] = cycle, next_cycle, written, first, step, results
    state[6], state[7] = next_offer, next_first
    return step == end


@njit(cache=True)
def slots(calendar, begin, count, share):
    """Reserve `count` beats of HBM from cycle `begin` on, one every `share` cycles; return the last beat's cycle."""
    cycle = begin - 1
    for _ in range(count):
        slot = int(cycle // share) + 1  # the first slot after this cycle
        while calendar[slot & (_WINDOW - 1)] == slot:
            slot += 1
        calendar[slot & (_WINDOW - 1)] = slot
        cycle = int(np.ceil(slot * share))
    return cycle
