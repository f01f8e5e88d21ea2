"""Causes of error that the core reports, beside the rules that instructions break."""

import enum

from neuroncore_rtl.spec.isa.rule import Rule

__all__ = ["CAUSE_BITS", "DETAIL_BITS", "DETAIL_CORE_BITS", "Cause", "cause_name"]

CAUSE_BITS = 8
"""Bits of a cause of either kind; 0 is none."""

DETAIL_BITS = 32
"""Bits of what is said of it."""

DETAIL_CORE_BITS = 8
"""Bits of a core in the detail of DISAGREE and of STUCK."""


class Cause(enum.IntEnum):
    """What went wrong that is not a broken rule, as those below 32 are; `detail` is what ERROR_DETAIL holds."""

    ENGINE = 32
    """A record is for another engine than the queue's. detail: the record's engine."""
    FETCH = 33
    """HBM answered the fetch of a record with an error. detail: 0."""
    SEMAPHORE = 34
    """An update would leave a semaphore below 0 or above 65,535, and was not done. detail: the semaphore."""
    WATCHDOG = 35
    """Nothing moved for WATCHDOG_LIMIT cycles, and this record waits for a semaphore. detail: the first semaphore that
    it waits for in bits 0 to 7, the value that it wants from bit 8, the lower 8 bits of what it has from bit 24."""
    STUCK = 36
    """Nothing moved for WATCHDOG_LIMIT cycles, no record waits for a semaphore, and this one has not finished.
    detail: 0; of a collective that waits for another core: 1 in bit 8, that core below it. Such a one is named even if
    other records wait for semaphores, which may be why they do."""
    AXI = 37
    """HBM answered a read or write of this copy with an error. detail: 0."""
    INDEX = 38
    """A row number of a gather or scatter that skips none is not below its limit. detail: the row number."""
    BOOT = 39
    """The image's header is wrong, or cannot be read. detail: which of its words; queue and record mean nothing."""
    DISAGREE = 40
    """The collective of another rank is not that of this one. detail: its core in bits 0 to 7; from bit 8, one more
    than the place in `SIGNATURE_FIELDS` of the lowest field in which they differ."""
    LINK = 41
    """A link of the chip has died while this collective was under way. detail: its direction."""


def cause_name(code: int) -> str:
    """Return the name of a cause of either kind; the number where there is none."""
    for kind in (Rule, Cause):
        if code in set(kind):
            return kind(code).name
    return str(code)
