"""Timing of the controller with the stock control program: boot, doorbells, completion of each section, exit.

Each constant is the length of a path through the program's instructions, in cycles.
"""

from collections.abc import Sequence
from itertools import groupby

from neuroncore_rtl.golden.timing.control_path import ControlPath
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.memory import TimedHbm
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.golden.timing.semaphores import Semaphores
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.memory_map import BOOT_WORDS

__all__ = ["Controller", "flow_path"]

ONE = ControlPath(first=7, between=0, last=5)
"""Path of `kernels/control/run.c`."""

SEVERAL = ControlPath(first=32, between=16, last=12)
"""Path of `kernels/control/sections.c`."""

TO_MAIN = 21
"""From the end of boot to `main`."""

TO_FIRST = 19
"""From the call of `run_section` to the first doorbell."""

DOORBELL = 12
"""From a write of a doorbell to the write of the next one."""

TO_CHECK = 10
"""From the last doorbell of a section to the first read of a queue's counters."""

CHECK = 11
"""From a read that finds a queue idle to the read of the next queue."""

POLL = 8
"""From a read that finds a queue busy to the next read."""

TO_PLACE = 8
"""From the cycle in which a queue frees a block slot to the stalled doorbell."""

TO_RETURN = 15
"""From the read that finds a section's last queue idle to the return of `run_section`."""

TO_EXIT = 1
"""From the return of `main` to the end."""

FLOW = {"SET": 16, "COPY": 18, "ADD": 20, "UNLESS_LESS": 23, "UNLESS": 18, "AGAIN": 18}
"""Cycles of each operation of `kernels/control/flow.c` except RUN and END; of a branch that is not taken."""

LEAVE = {"UNLESS_LESS": 9, "UNLESS": 7}
"""Additional cycles of a taken branch."""

FLOW_FIRST, FLOW_RUN, FLOW_NEXT, FLOW_END = 29, 20, 12, 13
"""Cycles from the start of `main` to the first operation; of a RUN before its section, and after it; of END."""

FLOW_CLEAR, FLOW_TO_CLEAR = 4, 2
"""`ControlPath.clear` and `to_clear` of `kernels/control/flow.c`."""


def flow_path(operations: Sequence[tuple[str, bool]]) -> ControlPath:
    """Return the cycles of `kernels/control/flow.c` for executed operations (name, whether it branches)."""
    gaps = [FLOW_FIRST]
    for name, leaves in operations:
        if name == "RUN":
            gaps[-1] += FLOW_RUN
            gaps.append(FLOW_NEXT)
        elif name != "END":
            gaps[-1] += FLOW[name] + (LEAVE.get(name, 0) if leaves else 0)
    gaps[-1] += FLOW_END
    return ControlPath(gaps[0], gaps[1:-1], gaps[-1], FLOW_CLEAR, FLOW_TO_CLEAR)


class Controller:
    """Rings the doorbells for an image's blocks, and records the end of its program, which has `words` words."""

    def __init__(
        self,
        config: Config,
        agenda: Agenda,
        hbm: TimedHbm,
        semaphores: Semaphores,
        queues: Sequence[Queue],
        image,
        words: int,
        sections: Sequence[int] | None,
        path: ControlPath | None,
    ):
        self._config, self._agenda, self._hbm = config, agenda, hbm
        self._semaphores, self._queues = semaphores, queues
        blocks = zip(image.blocks, image.records, strict=True)
        found = {section: list(items) for section, items in groupby(blocks, key=lambda item: item[0].section)}
        chosen = [*found] if sections is None else sections
        if missing := sorted({*chosen} - {*found}):
            raise ValueError(f"sections must be some of the image's, {[*found]}, not {missing}")
        self._sections = [found[section] for section in chosen]
        self._path = path or (ONE if len(found) == len(self._sections) == 1 else SEVERAL)
        self._changed = 0  # semaphores below this number may be nonzero
        self._words = words
        self.ended: int | None = None

    def start(self) -> None:
        """Boot the controller: schedule the start of `main`."""
        # HBM is idle: the first address is at its port at cycle 2, then one word per cycle.
        judged = 2 + self._hbm.latency + BOOT_WORDS
        booted = max(judged + 3 + self._hbm.latency + 1 + self._words, self._config.semaphores)
        self._section = -1
        self._returned(booted + TO_MAIN)

    def _returned(self, cycle: int) -> None:
        path = self._path
        self._section, self._block = self._section + 1, 0
        if self._section == len(self._sections):
            self._agenda.at(cycle + path.last + TO_EXIT, self._exit)
            return
        block, _ = self._sections[self._section][0]
        used = block.semaphores
        cleared = range(used.start, min(used.stop, self._changed))
        self._changed = max(used.stop, self._changed)
        if cleared:
            self._semaphores.clear(cleared)
            cycle += path.to_clear + path.clear * len(cleared)
        self._agenda.at(cycle + path.before(self._section) + TO_FIRST, self._ring)

    def _ring(self) -> None:
        block, records = self._sections[self._section][self._block]
        queue = self._queues[block.queue]
        if not queue.places:
            queue.on_place = self._place
            return
        queue.ring(block.address, records)
        self._block += 1
        if self._block < len(self._sections[self._section]):
            self._agenda.at(self._agenda.now + DOORBELL, self._ring)
        else:
            self._block = 0
            self._look = self._agenda.now + TO_CHECK
            self._agenda.at(self._look, self._check)

    def _place(self) -> None:
        self._queues[self._sections[self._section][self._block][0].queue].on_place = None
        self._agenda.at(self._agenda.now + TO_PLACE, self._ring)

    def _check(self) -> None:
        section = self._sections[self._section]
        while self._block < len(section):
            queue = self._queues[section[self._block][0].queue]
            if queue.pending:
                queue.on_idle = self._idle
                return
            if queue.idle_since > self._look:
                self._look += -(-(queue.idle_since - self._look) // POLL) * POLL
            self._look += CHECK
            self._block += 1
        self._returned(max(self._agenda.now, self._look - CHECK + TO_RETURN))

    def _idle(self) -> None:
        for queue in self._queues:
            queue.on_idle = None
        self._check()

    def _exit(self) -> None:
        self.ended = self._agenda.now
