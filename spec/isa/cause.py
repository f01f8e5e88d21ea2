"""Error causes that the core reports, in addition to the rules of instructions."""

import enum

from neuroncore_rtl.spec.isa.rule import Rule

__all__ = ["CAUSE_BITS", "DETAIL_BITS", "DETAIL_CORE_BITS", "Cause", "cause_name"]

CAUSE_BITS = 8
"""Width of a cause or rule; 0 means no error."""

DETAIL_BITS = 32

DETAIL_CORE_BITS = 8
"""Width of a core's number in the detail of DISAGREE and STUCK."""


class Cause(enum.IntEnum):
    """Causes of errors other than broken rules (codes below 32); `detail` is the content of ERROR_DETAIL."""

    ENGINE = 32
    """The record belongs to another engine than the queue's. detail: the record's engine."""
    FETCH = 33
    """HBM returned an error while the record was fetched. detail: 0."""
    SEMAPHORE = 34
    """An update was not made, because the semaphore would drop below 0 or exceed 65,535. detail: the semaphore."""
    WATCHDOG = 35
    """Nothing made progress for WATCHDOG_LIMIT cycles, and this record waits for a semaphore. detail: first unsatisfied
    semaphore in bits 0 to 7, the required value from bit 8, the lower 8 bits of the current value from bit 24.
    """
    STUCK = 36
    """As WATCHDOG, but no record waits for a semaphore, and this record has not finished. detail: 0. For a collective
    that waits for another core, bit 8 is 1 and bits 0 to 7 are that core; STUCK is then reported even if other records
    wait for semaphores.
    """
    AXI = 37
    """HBM returned an error for a read or write of this copy. detail: 0."""
    INDEX = 38
    """A row number is not below the limit, in a gather or scatter without `skip`. detail: the row number."""
    BOOT = 39
    """The image's header is wrong or unreadable. detail: index of the wrong word; queue and record are undefined."""
    DISAGREE = 40
    """Another rank executes a different collective. detail: core of that rank in bits 0 to 7; from bit 8, one plus the
    index in `SIGNATURE_FIELDS` of the lowest field that differs.
    """
    LINK = 41
    """A link of the chip failed during this collective. detail: its direction."""


def cause_name(code: int) -> str:
    """Return the name of a cause or rule; the code as text if it has no name."""
    for kind in (Rule, Cause):
        if code in set(kind):
            return kind(code).name
    return str(code)
