"""A DMA engine in time: the source's side reads groups of beats ahead, the destination's side takes and writes them.

A copy goes through in groups (`copy.py`). A group of the source arrives at some rate, is consumed at the slowest of
reading, casting and writing, and gives back its room in the buffer.
"""

from collections.abc import Callable
from functools import partial

from neuroncore_rtl.golden.timing.banks import Banks
from neuroncore_rtl.golden.timing.calendar import APART, SHARING, Accesses, LinePort, buffered_lines, line_accesses
from neuroncore_rtl.golden.timing.copy import Copy, plan_copy
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.memory import TimedHbm
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.golden.timing.walk import Walk
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Record, Storage

__all__ = ["DmaEngine"]

AHEAD = 24
"""Cycles for which a line port takes its banks at once."""


class DmaEngine:
    """One engine.

    Arguments:
        config: the machine's parameters.
        agenda: what happens when.
        number: of the engine.
        hbm: the memory.
        banks: of the memories on chip.
    """

    queue: Queue

    def __init__(self, config: Config, agenda: Agenda, number: int, hbm: TimedHbm, banks: Banks):
        self._config, self._agenda, self._hbm = config, agenda, hbm
        self._port = number % config.hbm_ports
        self._banks = banks
        self._held: tuple[Copy, int] | None = None
        self._judged: Copy | None = None
        self._reading: Copy | None = None  # at the source's side
        self._waiting: Copy | None = None  # for the destination's side
        self._writing: Copy | None = None
        self._room = config.dma_beats
        self._asker: Copy | None = None  # waits for room
        self._consumed = 0  # first cycle in which the destination's side has nothing
        self._taking = False
        self._mates = banks.engines[self._port]
        self._mates.append(self)
        self.until = [0, 0]  # the last accesses, at either side
        self._unanswered = 0
        self._late: Copy | None = None
        self.busy = 0
        self._copies = self._since = 0
        self.waited = {"hbm": 0, "bank": 0}

    # Checker

    def ready(self) -> int | None:
        """Return the first cycle in which it takes an instruction; None if that is not known."""
        return 0 if self._held is None else None

    def start(self, record: Record, timed: Timed) -> None:
        """Take an instruction in this cycle."""
        if not self._copies:
            self._since = self._agenda.now
        self._copies += 1
        verdict = (
            self._agenda.now + timing.DMA_CHECKER_INTERVAL + timing.DMA_CHECKER_REGISTERS[self._config.port_latency]
        )
        self._held = plan_copy(record, timed, self._config), verdict
        self._agenda.at(verdict, self._judge)

    def _judge(self) -> None:
        """Pass on the instruction that is held, if there is room."""
        if self._held is None or self._judged is not None or self._agenda.now < self._held[1]:
            return
        self._judged, self._held = self._held[0], None
        self._agenda.at(self._agenda.now + 1, self._begin)
        self.queue.engine_ready()

    # Source's side

    def _begin(self) -> None:
        """Begin with the source of the next copy, if it may."""
        copy = self._judged
        if copy is None or self._reading is not None or self._waiting is not None:
            return
        writing = self._writing
        if writing is not None and (copy.rows or copy.storages[0] == writing.storages[1]):
            return
        if copy.from_hbm and self._unanswered:
            return
        now = self._agenda.now
        self._judged = None
        self._judge()
        self._reading = self._waiting = copy
        self._agenda.at(now + 2 + 5 * copy.rows, self._ask, copy)
        self._agenda.at(now + 1, self._take_on)

    def _ask(self, copy: Copy) -> None:
        """Ask for the next group of the source."""
        number, now = copy.asked, self._agenda.now
        beats = copy.part(number, copy.source.beats)
        if beats > self._room:
            self._asker = copy
            return
        self._room -= beats
        copy.asked += 1
        if copy.from_hbm:
            bursts = max(1, copy.part(number, copy.source.bursts))

            self._asked_for(
                copy, self._hbm.read(self._port, now + 1, beats, bursts, partial(self._arrive, copy, beats))
            )
        else:

            def read(last: int) -> None:
                self._asked_for(copy, last + self._turns(0, last))
                late = self._config.port_latency  # and a cycle in the reader
                latency = timing.LINE_READ_LATENCY[late] + late
                self._arrive(copy, beats, now + latency, last + latency)

            self._access(copy, copy.source, 0, copy.start(number, copy.source.beats), beats, now, beats, read)

    def _asked_for(self, copy: Copy, asked: int) -> None:
        """Go on when a group is asked for."""
        if copy.asked < copy.groups:
            self._agenda.at(asked, self._ask, copy)
        else:
            self._agenda.at(asked, self._read)

    def _arrive(self, copy: Copy, beats: int, first: int, last: int) -> None:
        copy.arrived.append((beats, first, last))
        self._take_next()

    def _read(self) -> None:
        """All of the source is asked for."""
        self._reading = None
        self._begin()

    def _turns(self, side: int, cycle: int) -> int:
        """Return from how many cycles on a line port has one for this engine: those that are there take turns."""
        return 1 + sum(other is not self and other.until[side] > cycle for other in self._mates)

    def _access(
        self,
        copy: Copy,
        walk: Walk,
        side: int,
        first: int,
        count: int,
        begin: int,
        cycles: int,
        then: Callable[[int], None],
    ) -> None:
        """Make accesses on chip, those of the next cycles at once, so that others find their banks in time.

        Arguments:
            copy, walk, side: whose, and whether of the source (0), or of the destination (1).
            first, count: which of the walk's.
            begin, cycles: when the first one comes, and over how many cycles they come.
            then: told of the cycle of the last one.
        """
        banks, psum = self._banks, copy.storages[side] == Storage.PSUM
        turns = self._turns(side, begin)
        tables = ((banks.sbuf_reads, banks.sbuf_writes), (banks.psum_reads, banks.psum_writes))
        until = max(begin, self._agenda.now) + AHEAD
        wanted = Accesses(walk.banks, first, count, begin, cycles, turns, until)
        if side and not psum:
            most = timing.LINE_AHEAD + timing.LINE_PATIENCE
            found = buffered_lines(banks.sbuf_writes, banks.held[self._port], tuple(wanted), self._port, most)
            done, last, waited, written = found
            copy.written = max(copy.written, written)
        else:
            line = LinePort(
                *(tables[psum][side], tables[0][side], banks.owners[side], banks.debts[side], self._port),
                number=self._port + (side == 0),
                sharing=SHARING[side] if psum else APART,
                most=timing.LINE_PATIENCE,
            )
            done, last, waited = line_accesses(tuple(line), tuple(wanted))
        self.until[side] = last + turns - 1
        self.waited["bank"] += waited
        if done == count:
            then(last)
            return
        rest = last + turns, max(0, begin + cycles - last - turns)
        at = max(self._agenda.now + 1, last - AHEAD // 2)
        self._agenda.at(at, self._access, copy, walk, side, first + done, count - done, *rest, then)

    # Destination's side

    def _take_on(self) -> None:
        if self._waiting is None or self._writing is not None:
            return
        copy = self._writing = self._waiting
        self._waiting = None
        copy.begun = self._agenda.now + 2
        self._take_next()
        self._agenda.at(self._agenda.now + 1, self._begin)

    def _take_next(self) -> None:
        """Take the next group when it comes; so that what is on its way takes its banks in the order of time."""
        copy = self._writing
        if copy is not None and copy.arrived and not self._taking:
            self._taking = True
            begin = max(copy.arrived[0][1] + copy.late, copy.begun, self._consumed)
            self._agenda.at(max(begin, self._agenda.now), self._consume, copy)

    def _consume(self, copy: Copy) -> None:
        """Take a group that begins to arrive, and write it."""
        beats, first, last = copy.arrived.popleft()
        number = copy.taken
        copy.taken += 1
        writes = copy.part(number, copy.target.beats)
        cycles = max(beats, writes, copy.part(number, copy.casts))
        late = copy.late
        idle = max(copy.begun, self._consumed)
        begin = max(first + late, idle)
        self.waited["hbm"] += (begin - idle) * copy.from_hbm
        end = max(begin + cycles - 1, last + late + max(0, -(-writes // beats) - 1))
        finish = copy.taken == copy.groups
        if copy.to_hbm:
            bursts = max(1, copy.part(number, copy.target.bursts))
            pushed = end + 1
            ready = begin + 1 + -(-writes // bursts) + 3
            cycle = max(ready, pushed + 4 - writes + -(-writes // bursts))
            answer = partial(self._answered, copy) if finish else None
            self._unanswered += finish
            end = max(end, self._hbm.writes[self._port].free + writes - 1 - timing.WRITER_BEATS)
            self._agenda.at(max(cycle, self._agenda.now), self._write, writes, answer)
            self._consumed = end + 1
            if finish:
                self._agenda.at(max(pushed, end + 1), self._over, copy)
        else:
            wrote = partial(self._wrote, copy, beats, end)
            done = copy.start(number, copy.target.beats)
            self._access(copy, copy.target, 1, done, writes, begin + 1, end + 1 - begin, wrote)
            return
        self._taken(beats, end)

    def _wrote(self, copy: Copy, beats: int, end: int, written: int) -> None:
        self._consumed = max(end + 1, written - 1)
        if copy.taken == copy.groups:
            self._agenda.at(max(written, copy.written, self._agenda.now), self._over, copy)
        self._taken(beats, max(end, written - 1))

    def _taken(self, beats: int, end: int) -> None:
        """Go on when a group is taken."""
        self._taking = False
        self._agenda.at(max(end, self._agenda.now), self._free, beats)
        self._take_next()

    def _free(self, beats: int) -> None:
        self._room += beats
        if self._asker is not None:
            copy, self._asker = self._asker, None
            self._ask(copy)

    def _over(self, copy: Copy) -> None:
        """All is written on chip, or on its way to HBM."""
        if not copy.to_hbm and self._unanswered:
            self._late = copy  # copies finish in order
            return
        self._writing = None
        self._take_on()
        if not copy.to_hbm:
            self._agenda.at(self._agenda.now + 1, self._retire, copy)
        self._agenda.at(self._agenda.now + 1, self._begin)

    def _write(self, beats: int, answer: Callable[[int], None] | None) -> None:
        self._hbm.write(self._port, self._agenda.now, beats, answer)

    def _answered(self, copy: Copy, cycle: int) -> None:
        self._agenda.at(cycle + 2, self._answer, copy)

    def _answer(self, copy: Copy) -> None:
        self._unanswered -= 1
        self._retire(copy)
        if self._late is not None and not self._unanswered:
            late, self._late = self._late, None
            self._over(late)
        self._begin()

    def _retire(self, copy: Copy) -> None:
        self.queue.retire(copy.record, copy.timed)
        self._copies -= 1
        if not self._copies:
            self.busy += self._agenda.now - self._since
