"""Reservation tables of the on-chip memories, one for each memory and direction."""

import numpy as np

from neuroncore_rtl.golden.timing.calendar import Calendars, bank_places, new_calendar, new_owners
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config

__all__ = ["Banks"]


class Banks:
    """Banks of SBUF and PSUM, and the PSUM ports that all requesters except the array share.

    `owners` and `debts` are for reads and writes, see `golden.timing.calendar.LinePort`. `engines` are the DMA engines
    that share each line port.
    """

    def __init__(self, config: Config):
        ports = config.hbm_ports
        self.places = bank_places(config)
        self.sbuf_reads, self.sbuf_writes, self.psum_reads, self.psum_writes = (new_calendar() for _ in range(4))
        # Compiled functions take plain tuples: Numba unpacks a named tuple more slowly.
        self.calendars = tuple(
            Calendars(self.sbuf_reads, self.psum_reads, self.sbuf_writes, self.psum_writes, self.places)
        )
        self.owners = new_owners(), new_owners()
        # For reads, weights are round-robin requester 0, before the line ports.
        self.debts = np.zeros(1 + ports, np.int64), np.zeros(ports, np.int64)
        self.line_buffers = np.zeros((ports, timing.LINE_BUFFER + 1), np.int64)
        self.engines: list[list] = [[] for _ in range(ports)]
