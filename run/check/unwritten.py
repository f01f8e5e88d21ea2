"""Reads of on-chip bytes before they are written.

SBUF and PSUM are zero at the start of golden and of simulations, but arbitrary on a chip, so a result that depends on
their initial bytes is wrong even if golden and RTL agree. `kernels.program.allocation` refuses reads of a whole
unwritten tensor; this check tracks each byte in the order of golden's records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.check.touches import Touch, touches_of
from neuroncore_rtl.spec.isa import DmaCopy, Elementwise, Storage

__all__ = ["Unwritten", "find_unwritten"]

_touches_of = lru_cache(1 << 14)(touches_of)  # a model runs again with other data


@dataclass(frozen=True)
class Unwritten:
    """A read of unwritten bytes, the first at `partition` and `byte`; `source` is the line of the kernel."""

    instruction: str
    source: str
    touch: Touch
    partition: int
    byte: int

    def __str__(self) -> str:
        return (
            f"{self.instruction}: {self.touch.name} must be written before it is read, but "
            f"{self.touch.storage.name} partition {self.partition}, byte {self.byte} is not ({self.source})"
        )


def find_unwritten(image: Image, records: Iterable[tuple[int, int]]) -> Iterator[Unwritten]:
    """Yield each record's first read of unwritten on-chip bytes, for an image made from a program.

    Source rows of a gather are not checked, nor is HBM, which the image initialises. Rows that a scatter skips count as
    written. `records` are queue and HBM address of each record in the order of execution.
    """
    config = image.config
    written = {
        Storage.SBUF: np.zeros((config.partitions, config.sbuf_bytes), bool),
        Storage.PSUM: np.zeros((config.columns, config.psum_bytes), bool),
    }
    for register in image.registers:  # the control program writes them
        written[Storage.SBUF][register.partition, register.address : register.address + 4] = True

    @cache
    def places_at(address: int) -> tuple[list[_Place], list[_Place]]:
        instruction = image.locate(address)[1].instruction
        gathers = isinstance(instruction, DmaCopy) and instruction.gather is not None
        places = [
            (touch, _bytes_of(touch))
            for touch in _touches_of(instruction, config)
            if touch.storage in written and not (gathers and touch.name == "src")
        ]
        # A predicated copy keeps elements of dst, so it reads them.
        keeps = isinstance(instruction, Elementwise) and instruction.keep
        reads = [one for one in places if not one[0].writes or (keeps and one[0].name == "dst")]
        return reads, [one for one in places if one[0].writes]

    told = set()
    for _, address in records:
        reads, writes = places_at(address)
        for touch, place in reads:
            is_written = written[touch.storage][place]
            if address not in told and not is_written.all():
                told.add(address)
                row, column = np.argwhere(~is_written)[0]
                byte, entry = np.arange(config.sbuf_bytes)[place[1]][column], image.entry(address)
                yield Unwritten(entry.instruction.name, str(entry.source), touch, touch.partitions[row], int(byte))
        for touch, place in writes:
            written[touch.storage][place] = True


_Place = tuple[Touch, tuple[slice, slice | np.ndarray]]
"""An access, and the index of its bytes in a memory."""


def _bytes_of(touch: Touch) -> tuple[slice, slice | np.ndarray]:
    """Return the numpy index of the bytes of an access in a memory of shape [partitions, bytes]."""
    rows = slice(touch.partitions.start, touch.partitions.stop, touch.partitions.step)
    if len(touch.starts) == 1:
        return rows, slice(int(touch.starts[0]), int(touch.starts[0]) + touch.length)
    return rows, (touch.starts[:, np.newaxis] + np.arange(touch.length)).reshape(-1)
