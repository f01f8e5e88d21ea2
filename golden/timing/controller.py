"""The controller in time, with the stock control program: boot, doorbells, the wait for each section, exit.

Each number of cycles is a path through the program's instructions.
"""

from collections.abc import Collection, Sequence
from itertools import groupby

from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.memory import Hbm
from neuroncore_rtl.golden.timing.queue import Queue
from neuroncore_rtl.spec.config import SEMAPHORES, Config
from neuroncore_rtl.spec.memory_map import BOOT_WORDS

__all__ = ["Controller"]

TO_FIRST = 60
"""Cycles from the end of boot to the first doorbell."""

DOORBELL = 17
"""From a doorbell to the next one."""

TO_CHECK = 4
"""From the last doorbell of a section to the first look at a queue's counters."""

CHECK = 11
"""From a look that finds a queue idle to that at the next one."""

POLL = 8
"""From a look that does not to the next one."""

TO_NEXT = 40
"""From the look that finds a section's last queue idle to the next section's first doorbell."""

TO_EXIT = 27
"""From there to the end, if there is no other section."""


class Controller:
    """It rings for the blocks of an image, and says when its program has ended.

    Arguments:
        config: the machine's parameters.
        agenda: what happens when.
        queues: of the core.
        blocks, records: of the image.
        words: of the control program with its arguments.
        sections, aside: see :func:`golden.timing.predict`.
    """

    def __init__(
        self,
        config: Config,
        agenda: Agenda,
        hbm: Hbm,
        queues: Sequence[Queue],
        image,
        words: int,
        sections: Collection[int] | None,
        aside: int,
    ):
        self._config, self._agenda, self._hbm, self._queues = config, agenda, hbm, queues
        blocks = zip(image.blocks, image.records, strict=True)
        found = groupby(blocks, key=lambda item: item[0].section)
        self._sections = [list(items) for section, items in found if sections is None or section in sections]
        self._aside = aside
        self._words = words
        self.ended: int | None = None

    def start(self) -> None:
        """Boot."""
        # Nobody else is at HBM yet: an address at cycle 2, a word a cycle from that behind its data on.
        judged = 2 + self._hbm.latency + BOOT_WORDS
        booted = max(judged + 3 + self._hbm.latency + 1 + self._words, SEMAPHORES)
        self._section, self._block = 0, 0
        if not self._sections:
            self._agenda.at(booted + TO_FIRST, self._exit)
        else:
            self._agenda.at(booted + TO_FIRST, self._ring)

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
        self._agenda.at(self._agenda.now + 8, self._ring)

    def _check(self) -> None:
        """Look whether the queues of the section are idle, one after the other."""
        section = self._sections[self._section]
        while self._block < len(section):
            queue = self._queues[section[self._block][0].queue]
            if queue.left:
                queue.on_idle = self._idle
                return
            if queue.idle_since > self._look:
                self._look += -(-(queue.idle_since - self._look) // POLL) * POLL
            self._look += CHECK
            self._block += 1
        self._section, self._block = self._section + 1, 0
        self._look -= CHECK
        if self._section < len(self._sections):
            self._agenda.at(max(self._agenda.now, self._look + self._aside + TO_NEXT), self._ring)
        else:
            self._agenda.at(max(self._agenda.now, self._look + self._aside + TO_EXIT), self._exit)

    def _idle(self) -> None:
        for queue in self._queues:
            queue.on_idle = None
        self._check()

    def _exit(self) -> None:
        self.ended = self._agenda.now
