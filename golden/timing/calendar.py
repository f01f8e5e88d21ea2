"""Who has which bank of a memory in which cycle: a calendar, into which every access is put when it is known.

An access takes the first cycle from its own on in which its bank is free of those who go before: the array's moving
operands, the vector engine, the scalar engine, then its weights and the line ports of the DMA engines. Who is put in
late finds those behind him where they would not have been; so they are put in for few cycles at once. Weights and line
ports take turns: who was put in first, but would have lost, waits at his next access. Of the lines that a port writes
to SBUF some may wait, and those behind go ahead.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from neuroncore_rtl.spec.config import PSUM_BANKS, Config

__all__ = [
    "APART", "BEGUN", "GO", "SCALAR", "SHARING", "VECTOR", "WRITTEN", "Accesses", "Calendars", "LinePort", "Loads",
    "Moves", "Walk", "bank_places", "begin_steps", "buffered_lines", "columns", "line_accesses", "load_steps",
    "new_calendar", "new_owners", "slots", "steps",
]  # fmt: skip

_WINDOW = 1 << 14
"""Cycles that a calendar looks back and ahead, a power of two."""

ARRAY, VECTOR, SCALAR, _LINE, _PORT = 0, 8, 16, 24, 32
"""An entry has for each of those who ask, in the order of their ranks, a bit for each bank, weights and line ports in
common; then for each line port."""

APART = _PORT
"""A rank behind all of them: nobody shares a port with others."""

SHARING = SCALAR, VECTOR
"""From which rank on all share one port of PSUM, to read and to write."""

_BITS = 36

_BANKS = 8
"""Of a memory, at most. What is compiled and kept knows no number of another file."""

assert PSUM_BANKS == _BANKS == Config.RANGES["sbuf_banks"][1]


def bank_places(config: Config) -> np.ndarray:
    """Return where an address has its bank: bits below it, and the mask of it, in SBUF; in PSUM."""
    line, bank = config.line_bytes.bit_length() - 1, config.psum_bank.bit_length() - 1
    return np.array([line, config.sbuf_banks - 1, bank, config.psum_banks - 1], np.int64)


def new_calendar() -> np.ndarray:
    """Return an empty calendar: for each cycle, modulo the window, its number and who has what in it."""
    return np.full(_WINDOW, -1, np.int64)


def new_owners() -> np.ndarray:
    """Return a table of who has the banks of SBUF, of those who take turns, cycle by cycle."""
    return np.zeros((_WINDOW, _BANKS), np.uint8)


@njit(cache=True)
def _taken(calendar, cycle):
    entry = calendar[cycle & (_WINDOW - 1)]
    return entry & ((1 << _BITS) - 1) if entry >> _BITS == cycle else 0


@njit(cache=True)
def _take(calendar, cycle, bits):
    place = cycle & (_WINDOW - 1)
    entry = calendar[place]
    calendar[place] = entry | bits if entry >> _BITS == cycle else cycle << _BITS | bits


@njit(cache=True)
def _before(rank, bank, sharing):
    """Return the bits of those who go before a rank at a bank; sharing: the first of those who have one port."""
    found = bank
    for other in range(VECTOR, rank, _BANKS):
        found |= (1 if other >= sharing else bank) << other
    return found


@njit(cache=True)
def _precedes(first, second, cycle, count):
    """Return whether one of those who take turns, cycle by cycle, goes before another one."""
    turn = cycle % count
    return not first < turn <= second if first < second else second < turn <= first


class LinePort(NamedTuple):
    """A line port, and the calendars that its accesses are put into.

    Arguments:
        calendar: of the memory and direction.
        ports: calendar of SBUF, where the line ports are.
        owners: for each bank of SBUF and each cycle, the owner among those that take turns.
        debts: for each of those that take turns, the cycles that it waits because others were put in before it.
        port: number of the port, which has an access a cycle.
        number: among those that take turns.
        sharing: the first of the ranks that share one access a cycle, as in PSUM; APART: none do.
        most: cycles that it waits for engines before it goes first.
    """

    calendar: np.ndarray
    ports: np.ndarray
    owners: np.ndarray
    debts: np.ndarray
    port: int
    number: int
    sharing: int
    most: int


class Accesses(NamedTuple):
    """Accesses of a copy by a line port.

    Arguments:
        banks: of all accesses of the copy.
        first, count: the first of the accesses, and their number.
        begin: earliest cycle of the first access.
        cycles: the others follow evenly over so many cycles.
        turns: least cycles from one access to the next.
        until: cycle after which no further access is put in.
    """

    banks: np.ndarray
    first: int
    count: int
    begin: int
    cycles: int
    turns: int
    until: int


@njit(cache=True)
def line_accesses(line, accesses):
    """Put accesses into the calendar of a `LinePort`; return their number, the cycle of the last one, and the cycles
    that they waited for banks. Those that do not fit before `until` are left for the next call."""
    calendar, ports, owners, debts, port, number, sharing, most = line
    banks, first, count, begin, cycles, turns, until = accesses
    cycle, waited, own, shared = begin - 1, 0, 1 << (_PORT + port), sharing < APART
    while debts[number]:
        cycle += 1
        if _taken(ports, cycle) & own == 0:
            _take(ports, cycle, own)
            debts[number] -= 1
    for done in range(count):
        if cycle >= until:
            return done, cycle, waited
        cycle = max(cycle + (turns if done else 1), begin + done * cycles // count)
        bank = 1 << banks[first + done]
        engines, mine = _before(_LINE, bank, sharing), (1 if shared else bank) << _LINE
        patience = most
        while True:
            taken = _taken(calendar, cycle)
            if _taken(ports, cycle) & own == 0:
                if taken & mine == 0 and (taken & engines == 0 or patience == 0):
                    break
                owner = owners[cycle & (_WINDOW - 1), banks[first + done]]
                if not shared and taken & mine and _precedes(number, owner, cycle, len(debts)):
                    debts[owner] += 1
                    break
                # Nobody else of this port goes before a request that waits.
                _take(ports, cycle, own)
                patience -= patience > 0
            waited += 1
            cycle += 1
        _take(calendar, cycle, mine)
        _take(ports, cycle, own)
        if not shared:
            owners[cycle & (_WINDOW - 1), banks[first + done]] = number
    return count, cycle, waited


@njit(cache=True)
def buffered_lines(calendar, held, accesses, port, most):
    """Put the lines that a port writes to SBUF into a calendar, those behind one whose bank is busy ahead of it; return
    how many of them, the cycle in which the last one is taken, cycles that they wait to be taken, and the cycle in
    which all are written.

    Arguments:
        held: of each place for a line that waits, and of one for the line that comes, the cycle in which it is written.
        most: cycles that a line that is taken waits for engines before it goes first.
        calendar: of SBUF's writes, with its ports.
        accesses: an `Accesses`. port: number of the port.
    """
    banks, first, count, begin, cycles, turns, until = accesses
    came, waited, written, own = begin - 1, 0, begin, 1 << (_PORT + port)
    for done in range(count):
        if came >= until:
            return done, came, waited, written
        due, place = max(came + (turns if done else 1), begin + done * cycles // count), held.argmin()
        came = max(due, held[place])
        waited += came - due
        bank = 1 << banks[first + done]
        engines, cycle = _before(_LINE, bank, APART), came
        while True:
            taken = _taken(calendar, cycle)
            if taken & (bank << _LINE | own) == 0 and (taken & engines == 0 or cycle - came >= most):
                break
            cycle += 1
        _take(calendar, cycle, bank << _LINE | own)
        held[place] = cycle
        written = max(written, cycle)
    return count, came, waited, written


class Calendars(NamedTuple):
    """The calendars of both memories and directions, and the bank places of addresses (`bank_places`)."""

    sbuf_reads: np.ndarray
    psum_reads: np.ndarray
    sbuf_writes: np.ndarray
    psum_writes: np.ndarray
    places: np.ndarray


class Moves(NamedTuple):
    """The columns of a MultiplyMoving.

    Arguments:
        begin: cycle of the first column.
        count, address, stride: of the columns in SBUF, bytes.
        place: PSUM address of the results, words.
        accumulate: whether PSUM is read.
        to_read, to_write: cycles from a column to its read and its write of PSUM.
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
    """Put the columns of a MultiplyMoving into the calendars: they never wait."""
    reads, psum_reads, _, psum_writes, places = calendars
    begin, count, address, stride, place, accumulate, to_read, to_write = moves
    before = -1
    bank = 1 << (place >> (places[2] - 2) & places[3])
    for number in range(count):
        word = (address + number * stride) >> 2
        if word != before:
            _take(reads, begin + number, 1 << (word >> (places[0] - 2) & places[1]))
            before = word
        if accumulate:
            _take(psum_reads, begin + number + to_read, bank)
        _take(psum_writes, begin + number + to_write, bank)


class Loads(NamedTuple):
    """The steps of a LoadStationary.

    Arguments:
        begin: earliest cycle of the first step.
        count, address, step: of the steps in SBUF, bytes.
        most: cycles that a step waits for engines before it goes first.
    """

    begin: int
    count: int
    address: int
    step: int
    most: int


@njit(cache=True)
def load_steps(calendar, owners, debts, places, loads):
    """Put the steps of a LoadStationary into the calendar; return the cycle of the last one.

    It is the first of those that take turns; for owners and debts see `LinePort`, for places `bank_places`.
    """
    begin, count, address, step, most = loads
    cycle = begin - 1 + debts[0]
    debts[0] = 0
    for number in range(count):
        cycle += 1
        place = (address + number * step) >> places[0] & places[1]
        engines, mine = _before(_LINE, 1 << place, APART), 1 << place << _LINE
        patience = most
        while True:
            taken = _taken(calendar, cycle)
            if taken & engines == 0 or patience == 0:
                if taken & mine == 0:
                    break
                owner = owners[cycle & (_WINDOW - 1), place]
                if _precedes(0, owner, cycle, len(debts)):
                    debts[owner] += 1
                    break
            patience -= patience > 0
            cycle += 1
        _take(calendar, cycle, mine)
        owners[cycle & (_WINDOW - 1), place] = 0
    return cycle


@njit(cache=True)
def _free(calendar, places, cycle, access, address, rank, sharing):
    """Return the first cycle in which an engine gets a column; sharing: of PSUM, see `_before`."""
    memory = 2 if access[1] else 0
    bank = 1 << (address >> places[memory] & places[memory + 1])
    if not access[1]:
        sharing = APART
    bits = _before(rank, bank, sharing)
    while _taken(calendar, cycle) & bits:
        cycle += 1
    _take(calendar, cycle, (1 if rank >= sharing else bank) << rank)
    return cycle


GO, NEXT, WRITTEN, BEGUN, NUMBER, RESULTS, _INDEX, _ROWS, _RING = 0, 1, 2, 3, 4, 5, 6, 10, 22
"""Places in the state of an instruction: cycle of its last step, of the next one at the earliest, of its last write,
and of its first step; its next step; its writes so far; indices, places of its walks, and cycles of its last writes."""


@njit(cache=True)
def begin_steps(first, written, depth, a, b, dst):
    """Return the state of an element-wise instruction before its first step.

    Arguments:
        first: cycle of the first read at the earliest. written: of the last write before.
        depth: results that may be on their way.
        a, b, dst: of an access, whether it is there, whether in PSUM, its address, its steps in bytes, outermost first.
    """
    state = np.zeros(_RING + depth, np.int64)
    state[GO], state[NEXT], state[WRITTEN], state[BEGUN] = first - 1, first, written, -1
    for d in range(4):
        state[_ROWS + d], state[_ROWS + 4 + d], state[_ROWS + 8 + d] = a[2], b[2], dst[2]
    state[_RING:] = -1
    return state


class Walk(NamedTuple):
    """An element-wise instruction on its way through its elements.

    Arguments:
        state: see `begin_steps`; it is continued.
        plan: the numbers of a `golden.timing.plan.Plan`; compiled code that is kept knows no class of another file.
        shape: counts, outermost first.
        a, b, dst: see `begin_steps`.
    """

    state: np.ndarray
    plan: tuple[int, ...]
    shape: np.ndarray
    a: np.ndarray
    b: np.ndarray
    dst: np.ndarray


@njit(cache=True)
def steps(calendars, rank, until, walk):
    """Put the steps of an element-wise instruction into the calendars, up to a cycle; return whether those are all.

    Arguments:
        calendars: a `Calendars`.
        rank: VECTOR or SCALAR.
        until: the cycle.
        walk: a `Walk`.
    """
    sbuf_reads, psum_reads, sbuf_writes, psum_writes, places = calendars
    state, plan, shape, a, b, dst = walk
    before, behind, interval, delay, depth, group, silent = plan
    go, next_go, after, begun, step, results = state[0], state[1], state[2], state[3], state[4], state[5]
    index, rows = state[_INDEX:_ROWS], state[_ROWS:_RING]
    both = a[0] and b[0] and not a[1] and not b[1]
    total = shape[0] * shape[1] * shape[2] * shape[3]
    end = before + total + behind
    while step < end and go < until:
        number = step - before
        element = 0 <= number < total
        came = go + 1
        if element:
            if b[0]:
                came = _free(psum_reads if b[1] else sbuf_reads, places, came, b, rows[7], rank, SHARING[0])
            if a[0]:
                asked = max(came + 1, next_go) if both else go + 1
                came = max(came, _free(psum_reads if a[1] else sbuf_reads, places, asked, a, rows[3], rank, SHARING[0]))
        writes = number >= total or (element and number >= silent and (number + 1) % group == 0)
        go = max(came, next_go)
        if writes:
            place = _RING + results % depth
            go = max(go, state[place] + 1)
            after = max(go + delay, after + 1)
            if element:
                after = _free(psum_writes if dst[1] else sbuf_writes, places, after, dst, rows[11], rank, SHARING[1])
            state[place] = after
            results += 1
        next_go = go + interval
        if begun < 0:
            begun = go
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
    state[0], state[1], state[2], state[3], state[4], state[5] = go, next_go, after, begun, step, results
    return step == end


@njit(cache=True)
def slots(calendar, begin, count, share):
    """Put beats into the calendar of HBM, which moves one in `share` cycles; return the cycle of the last one."""
    cycle = begin - 1
    for _ in range(count):
        slot = int(np.ceil((cycle + 1) / share))
        while calendar[slot & (_WINDOW - 1)] == slot:
            slot += 1
        calendar[slot & (_WINDOW - 1)] = slot
        cycle = int(np.ceil(slot * share))
    return cycle
