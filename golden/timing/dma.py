"""Timing of a DMA engine: the source side prefetches groups of beats, the destination side consumes and writes them.

A group arrives at the source's rate, is consumed at the slowest of reading, casting and writing, and then frees its
space in the buffer. `copy.py` defines the groups.
"""

from collections.abc import Callable
from functools import partial

from neuroncore_rtl.golden.timing.banks import Banks
from neuroncore_rtl.golden.timing.calendar import SHARING, UNSHARED, Accesses, LinePort, buffered_lines, line_accesses
from neuroncore_rtl.golden.timing.copy import Copy, plan_copy
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.memory import BurstWindow, TimedHbm
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.golden.timing.walk import Walk
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Record, Storage

__all__ = ["DmaEngine"]

AHEAD = 24
"""Cycles ahead for which a line port reserves banks."""

TO_ANSWER = 5
"""Cycles without HBM's latency from the last beat of a burst in the writer until the burst counts as answered."""


class DmaEngine:
    """Timing model of one DMA engine."""

    queue: Queue

    def __init__(self, config: Config, agenda: Agenda, number: int, hbm: TimedHbm, banks: Banks):
        self._config, self._agenda, self._hbm = config, agenda, hbm
        self._port = number % config.hbm_ports
        self._banks = banks
        self._held: tuple[Copy, int] | None = None
        self._judged: Copy | None = None
        self._reading: Copy | None = None  # on the source side
        self._waiting: Copy | None = None  # for the destination side
        self._writing: Copy | None = None
        self._room = config.dma_beats
        self._stalled: Copy | None = None  # waits for space in the buffer
        self._consumed = 0  # first cycle in which the destination side is idle
        self._accepting = False
        self._mates = banks.engines[self._port]
        self._mates.append(self)
        self.until = [0, 0]  # cycle of the last access on each side
        self._unanswered = 0
        self._pushes = BurstWindow(timing.WRITER_BURSTS, hbm.latency + TO_ANSWER)
        self._late: Copy | None = None
        self.busy = 0
        self._copies = self._since = 0
        self.waited = {"hbm": 0, "bank": 0}

    # Checker

    def ready(self) -> int | None:
        """Return the first cycle in which the engine accepts an instruction, or None if unknown."""
        return 0 if self._held is None else None

    def start(self, record: Record, timed: Timed) -> None:
        """Accept an instruction in this cycle."""
        if not self._copies:
            self._since = self._agenda.now
        self._copies += 1
        verdict = (
            self._agenda.now + timing.DMA_CHECKER_INTERVAL + timing.DMA_CHECKER_REGISTERS[self._config.port_latency]
        )
        self._held = plan_copy(record, timed, self._config), verdict
        self._agenda.at(verdict, self._judge)

    def _judge(self) -> None:
        if self._held is None or self._judged is not None or self._agenda.now < self._held[1]:
            return
        self._judged, self._held = self._held[0], None
        self._agenda.at(self._agenda.now + 1, self._begin)
        self.queue.engine_ready()

    # Source side

    def _begin(self) -> None:
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
        self._agenda.at(now + 2 + 5 * copy.rows, self._request_group, copy)
        self._agenda.at(now + 1, self._start_writing)

    def _request_group(self, copy: Copy) -> None:
        number, now = copy.requested, self._agenda.now
        beats = copy.part(number, copy.source.beats)
        if beats > self._room:
            self._stalled = copy
            return
        self._room -= beats
        copy.requested += 1
        if copy.from_hbm:
            bursts, interval = max(1, copy.part(number, copy.source.bursts)), 1 + self._config.port_latency

            def arrive(first: int, last: int) -> None:
                self._arrive(copy, beats, first, max(last, first + (bursts - 1) * interval))

            begin, apart = self._packets(0, now + 1, copy.part(number, copy.source.packets))
            asked = self._hbm.read(self._port, begin, beats, bursts, arrive, apart)
            self._continue_source(copy, max(asked, begin - 1 + bursts * interval))
        else:

            def accept(last: int) -> None:
                self._continue_source(copy, last + self._interval(0, last))
                late = self._config.port_latency  # the reader adds as many cycles
                latency = timing.LINE_READ_LATENCY[late] + late
                self._arrive(copy, beats, now + latency, last + latency)

            self._access(copy, copy.source, 0, copy.start(number, copy.source.beats), beats, now, beats, accept)

    def _continue_source(self, copy: Copy, cycle: int) -> None:
        if copy.requested < copy.groups:
            self._agenda.at(cycle, self._request_group, copy)
        else:
            self._agenda.at(cycle, self._finish_source)

    def _arrive(self, copy: Copy, beats: int, first: int, last: int) -> None:
        copy.arrived.append((beats, first, last))
        self._accept_next()

    def _finish_source(self) -> None:
        self._reading = None
        self._begin()

    def _interval(self, side: int, cycle: int) -> int:
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
        """Reserve `count` accesses of a walk from number `first` on, spread over `cycles` from `begin` on.

        `side` is 0 for the source, 1 for the destination. `then` is called with the cycle of the last access.
        """
        banks, psum = self._banks, copy.storages[side] == Storage.PSUM
        interval = self._interval(side, begin)
        tables = ((banks.sbuf_reads, banks.sbuf_writes), (banks.psum_reads, banks.psum_writes))
        until = max(begin, self._agenda.now) + AHEAD
        wanted = Accesses(walk.banks, first, count, begin, cycles, interval, until)
        if side and not psum:
            patience = timing.LINE_AHEAD + timing.LINE_PATIENCE
            found = buffered_lines(
                banks.sbuf_writes, banks.line_buffers[self._port], tuple(wanted), self._port, patience
            )
            done, last, waited, written = found
            copy.written = max(copy.written, written)
        else:
            line = LinePort(
                *(tables[psum][side], tables[0][side], banks.owners[side], banks.debts[side], self._port),
                number=self._port + (side == 0),
                sharing=SHARING[side] if psum else UNSHARED,
                patience=timing.LINE_PATIENCE,
            )
            done, last, waited = line_accesses(tuple(line), tuple(wanted))
        self.until[side] = last + interval - 1
        self.waited["bank"] += waited
        if done == count:
            then(last)
            return
        rest = last + interval, max(0, begin + cycles - last - interval)
        at = max(self._agenda.now + 1, last - AHEAD // 2)
        self._agenda.at(at, self._access, copy, walk, side, first + done, count - done, *rest, then)

    def _packets(self, way: int, cycle: int, packets: int) -> tuple[int, int]:
        """Return when the first of some packets begins, from `cycle` on, and the cycles from there to the last one."""
        interval = self._config.packet_interval
        if not (interval and packets):
            return cycle, 0
        return self._hbm.packets[way].take(cycle, packets * interval), (packets - 1) * interval

    # Destination side

    def _start_writing(self) -> None:
        if self._waiting is None or self._writing is not None:
            return
        copy = self._writing = self._waiting
        self._waiting = None
        copy.accepts_from = self._agenda.now + 2
        self._accept_next()
        self._agenda.at(self._agenda.now + 1, self._begin)

    def _accept_next(self) -> None:
        """Schedule `_consume` for when the first arrived group can be accepted, so that banks are reserved in order."""
        copy = self._writing
        if copy is not None and copy.arrived and not self._accepting:
            self._accepting = True
            begin = max(copy.arrived[0][1] + copy.latency, copy.accepts_from, self._consumed)
            self._agenda.at(max(begin, self._agenda.now), self._consume, copy)

    def _consume(self, copy: Copy) -> None:
        beats, first, last = copy.arrived.popleft()
        number = copy.consumed
        copy.consumed += 1
        writes = copy.part(number, copy.target.beats)
        cycles = max(beats, writes, copy.part(number, copy.casts))
        late = copy.latency
        idle = max(copy.accepts_from, self._consumed)
        begin = max(first + late, idle)
        self.waited["hbm"] += (begin - idle) * copy.from_hbm
        end = max(begin + cycles - 1, last + late + max(0, -(-writes // beats) - 1))
        finish = copy.consumed == copy.groups
        if copy.to_hbm:
            bursts = max(1, copy.part(number, copy.target.bursts))
            first, apart = self._packets(1, begin + 1, copy.part(number, copy.target.packets))
            end = max(end + first - begin - 1, first + apart)
            begin = first - 1
            pushed, _, _ = self._pushes.take(begin + 1, end + 1 - begin, bursts, bursts)
            end = pushed - 1
            ready = begin + 1 + -(-writes // bursts) + 3
            cycle = max(ready, pushed + 4 - writes + -(-writes // bursts))
            answer = partial(self._answered, copy) if finish else None
            self._unanswered += finish
            end = max(end, self._hbm.writes[self._port].free + writes - 1 - timing.WRITER_BEATS)
            self._agenda.at(max(cycle, self._agenda.now), self._write, writes, answer)
            self._consumed = end + 1
            if finish:
                self._agenda.at(max(pushed, end + 1), self._finish_copy, copy)
        else:
            wrote = partial(self._wrote, copy, beats, end)
            done = copy.start(number, copy.target.beats)
            self._access(copy, copy.target, 1, done, writes, begin + 1, end + 1 - begin, wrote)
            return
        self._finish_group(beats, end)

    def _wrote(self, copy: Copy, beats: int, end: int, written: int) -> None:
        self._consumed = max(end + 1, written - 1)
        if copy.consumed == copy.groups:
            self._agenda.at(max(written, copy.written, self._agenda.now), self._finish_copy, copy)
        self._finish_group(beats, max(end, written - 1))

    def _finish_group(self, beats: int, end: int) -> None:
        self._accepting = False
        self._agenda.at(max(end, self._agenda.now), self._free, beats)
        self._accept_next()

    def _free(self, beats: int) -> None:
        self._room += beats
        if self._stalled is not None:
            copy, self._stalled = self._stalled, None
            self._request_group(copy)

    def _finish_copy(self, copy: Copy) -> None:
        if not copy.to_hbm and self._unanswered:
            self._late = copy  # copies finish in order
            return
        self._writing = None
        self._start_writing()
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
            self._finish_copy(late)
        self._begin()

    def _retire(self, copy: Copy) -> None:
        self.queue.retire(copy.record, copy.timed)
        self._copies -= 1
        if not self._copies:
            self.busy += self._agenda.now - self._since
