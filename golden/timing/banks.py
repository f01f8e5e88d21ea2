"""The memories on chip: a calendar for each of them and each direction."""

import numpy as np

from neuroncore_rtl.golden.timing.calendar import Calendars, bank_places, new_calendar, new_owners
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config

__all__ = ["Banks"]


class Banks:
    """Of SBUF the eight banks; of PSUM those, and the ports that all but the array share.

    Arguments:
        config: the machine's parameters.

    Attributes:
        calendars: all of them, with the bank places of addresses.
        places: see :func:`golden.timing.calendar.bank_places`.
        sbuf_reads, sbuf_writes, psum_reads, psum_writes: calendars.
        owners, debts: of reads and of writes, see :class:`golden.timing.calendar.LinePort`.
        held: of each line port, the cycles in which the lines in its buffer are written, and the one that comes.
        engines: of each line port, the DMA engines that are on it.
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
        # Weights are the first of those who take turns at reading.
        self.debts = np.zeros(1 + ports, np.int64), np.zeros(ports, np.int64)
        self.held = np.zeros((ports, timing.LINE_BUFFER + 1), np.int64)
        self.engines: list[list] = [[] for _ in range(ports)]
