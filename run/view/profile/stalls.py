"""What an engine waited for: every cycle of a run has one cause, so that they sum to the cycles of the run."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np

from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.spec.isa import Instruction, Region

__all__ = ["MEANINGS", "StallCause", "causes_of", "counted_stalls", "spans_of"]


class StallCause(enum.IntEnum):
    """What the cycle of an engine went to."""

    BUSY = 0
    DATA = 1
    RESULT = 2
    PLACE = 3
    RECORD = 4
    ENGINE = 5
    START = 6
    END = 7


MEANINGS: Mapping[StallCause, str] = {
    StallCause.BUSY: "it worked: an instruction in the engine, of the tensor engine a column",
    StallCause.DATA: "waited for data: a load",
    StallCause.RESULT: "waited for a result of another engine",
    StallCause.PLACE: "waited for a place: a buffer still in use",
    StallCause.RECORD: "waited for its next record",
    StallCause.ENGINE: "waited for itself: weights, fill and drain, turns at a memory",
    StallCause.START: "boot, and the controller between sections: no engine has anything to do",
    StallCause.END: "nothing was left for it to do, in this section",
}
"""Each cause in words. What is waited for counts before the record that waits: fetching that sooner would not help."""


def causes_of(run: ProfiledRun, queue: int) -> np.ndarray:
    """Return the cause of every cycle of the engine of a queue, uint8 [cycles].

    A cycle before an instruction is issued goes to that of what it waits for which completes last, if that has not yet
    completed; else to its record, if that has not come; else to the engine, if that has not finished what it took
    before; else to what was waited for, as a semaphore takes some cycles, or to the record if nothing was. Of another
    section nothing is waited for.
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
        awaited = [(run.ended(one), one) for one in run.awaited(ran)]
        last = max(awaited, key=lambda pair: pair[0], default=None)
        cause = StallCause.RECORD if last is None else _cause(run, ran, last[1])
        window[:] = cause
        window[cycles < flying] = StallCause.ENGINE
        window[cycles < ran.fetched] = StallCause.RECORD
        if last is not None:
            window[cycles < last[0]] = cause
        since = ran.issued
        flying = max(flying, run.ended(ran))
    found[since:flying] = StallCause.ENGINE
    quiet = 0
    for _, begin, end in run.sections or [(0, run.cycles, run.cycles)]:
        found[quiet:begin] = StallCause.START
        quiet = end
    for begin, end in run.busy[queue]:
        found[begin:end] = StallCause.BUSY
    return found


def counted_stalls(causes: np.ndarray) -> dict[StallCause, int]:
    """Return the cycles of every cause."""
    return dict(zip(StallCause, np.bincount(causes, minlength=len(StallCause)).tolist(), strict=True))


def spans_of(causes: np.ndarray) -> Iterator[tuple[int, int, StallCause]]:
    """Yield the first cycle of every stall, the one after the last, and its cause."""
    changes = [0, *(np.flatnonzero(np.diff(causes)) + 1).tolist(), len(causes)]
    for begin, end in pairwise(changes):
        if begin < end and causes[begin] != StallCause.BUSY:
            yield begin, end, StallCause(int(causes[begin]))


def _cause(run: ProfiledRun, ran: Ran, awaited: Ran) -> StallCause:
    """Return why a record waits for another one.

    A record that has too many waits leaves some to the one before it in its queue, or to a NOP.
    """
    waiting = [ran, *run.behind(ran), *(run.waiting.get(ran.number, ()) if _only_waits(ran) else ())]
    # A NOP stands for what it waits for, and for what is before it in its queue.
    behind = [*run.awaited(awaited), *run.before(awaited)] if _only_waits(awaited) else []
    for one in (awaited, *sorted(behind, key=run.ended, reverse=True)):
        for cause in filter(None, (_conflict(one.record.instruction, w.record.instruction) for w in waiting)):
            return cause
    return _from(awaited.record.instruction)


def _conflict(earlier: Instruction, later: Instruction) -> StallCause | None:
    """Return why an instruction must wait for an earlier one; None if it need not."""
    if _meet(earlier.writes, later.reads):
        return _from(earlier)
    return StallCause.PLACE if _meet((*earlier.reads, *earlier.writes), later.writes) else None


def _from(instruction: Instruction) -> StallCause:
    return StallCause.DATA if instruction.transfers else StallCause.RESULT


def _only_waits(ran: Ran) -> bool:
    """Return whether a record touches nothing, and is there only to wait and to be waited for."""
    return not (ran.record.instruction.reads or ran.record.instruction.writes)


def _meet(some: Iterable[Region], others: Iterable[Region]) -> bool:
    others = tuple(others)
    return any(overlap(one, other) for one in some for other in others)
