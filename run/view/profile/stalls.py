"""Stall causes of an engine: every cycle has exactly one cause, so they sum to the run's cycles."""

import enum
from collections.abc import Iterator, Mapping
from itertools import pairwise, product, starmap

import numpy as np

from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.spec.isa import Instruction

__all__ = ["MEANINGS", "StallCause", "causes_of", "counted_stalls", "spans_of"]


class StallCause(enum.IntEnum):
    """Activity of an engine in a cycle: busy, or the cause of its stall."""

    BUSY = 0
    DATA = 1
    RESULT = 2
    PLACE = 3
    RECORD = 4
    ENGINE = 5
    START = 6
    END = 7


MEANINGS: Mapping[StallCause, str] = {
    StallCause.BUSY: "busy: an instruction in the engine; in the tensor engine, a column",
    StallCause.DATA: "waited for data: a load",
    StallCause.RESULT: "waited for a result of another engine",
    StallCause.PLACE: "waited for free memory: a buffer still in use",
    StallCause.RECORD: "waited for its next record",
    StallCause.ENGINE: "waited for itself: weights, fill and drain, memory arbitration",
    StallCause.START: "boot, and the controller between sections: no engine has work",
    StallCause.END: "finished its work in this section",
}
"""Description of each cause. A dependence has precedence over a missing record: an earlier fetch would not help."""


def causes_of(run: ProfiledRun, queue: int) -> np.ndarray:
    """Return the cause of every cycle of a queue's engine, uint8 [cycles].

    The cause of a cycle before an issue is the first that applies:
    1. The last awaited record to complete has not completed: the cause of that dependence.
    2. The record has not been fetched: RECORD.
    3. The engine has not finished earlier instructions: ENGINE.
    4. Otherwise the dependence of 1, because semaphores take some cycles; RECORD without a dependence.
    Dependences on other sections do not count.
    """
    found = np.full(run.cycles, StallCause.END, np.uint8)
    since = flying = section = 0
    for ran in run.queues.get(queue, ()):
        if run.section(ran) != section:
            section = run.section(ran)
            found[since:flying] = StallCause.ENGINE
            since = run.sections[section][1]
        window = found[since : ran.issued]
        cycles = np.arange(since, since + len(window))
        awaited = [(run.end_of(one), one) for one in run.awaited(ran)]
        last = max(awaited, key=lambda pair: pair[0], default=None)
        cause = StallCause.RECORD if last is None else _cause(run, ran, last[1])
        window[:] = cause
        window[cycles < flying] = StallCause.ENGINE
        window[cycles < ran.fetched] = StallCause.RECORD
        if last is not None:
            window[cycles < last[0]] = cause
        since = ran.issued
        flying = max(flying, run.end_of(ran))
    found[since:flying] = StallCause.ENGINE
    quiet = 0
    for _, begin, end in run.sections or [(0, run.cycles, run.cycles)]:
        found[quiet:begin] = StallCause.START
        quiet = end
    for begin, end in run.busy[queue]:
        found[begin:end] = StallCause.BUSY
    return found


def counted_stalls(causes: np.ndarray) -> dict[StallCause, int]:
    """Return the number of cycles by cause."""
    return dict(zip(StallCause, np.bincount(causes, minlength=len(StallCause)).tolist(), strict=True))


def spans_of(causes: np.ndarray) -> Iterator[tuple[int, int, StallCause]]:
    """Yield the stalls: first cycle, end, cause."""
    changes = [0, *(np.flatnonzero(np.diff(causes)) + 1).tolist(), len(causes)]
    for begin, end in pairwise(changes):
        if begin < end and causes[begin] != StallCause.BUSY:
            yield begin, end, StallCause(int(causes[begin]))


def _cause(run: ProfiledRun, ran: Ran, awaited: Ran) -> StallCause:
    """Return the cause of a record's wait for another one.

    A record with too many waits delegates some to the previous record in its queue, or to a NOP.
    """
    waiting = [ran, *run.neighbours(ran)[1], *(run.waiting.get(ran.number, ()) if _only_waits(ran) else ())]
    # A NOP represents the records that it waits for, and the previous one in its queue.
    behind = [*run.awaited(awaited), *run.neighbours(awaited)[0]] if _only_waits(awaited) else []
    for one in (awaited, *sorted(behind, key=run.end_of, reverse=True)):
        for cause in filter(None, (_conflict(one.record.instruction, w.record.instruction) for w in waiting)):
            return cause
    return _from(awaited.record.instruction)


def _conflict(earlier: Instruction, later: Instruction) -> StallCause | None:
    """Return the cause by which `later` waits for `earlier`; None if they are independent."""
    if any(starmap(overlap, product(earlier.writes, later.reads))):
        return _from(earlier)
    meet = any(starmap(overlap, product((*earlier.reads, *earlier.writes), later.writes)))
    return StallCause.PLACE if meet else None


def _from(instruction: Instruction) -> StallCause:
    return StallCause.DATA if instruction.transfers else StallCause.RESULT


def _only_waits(ran: Ran) -> bool:
    """Return whether a record accesses no memory."""
    return not (ran.record.instruction.reads or ran.record.instruction.writes)
