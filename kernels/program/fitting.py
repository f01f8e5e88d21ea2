"""Fitting of a program into memory that does not suffice in program order; the results stay the same.

A kernel may compute all tiles of a matrix in one loop and read them in another, so that all of them are live at once.
Three steps, as far as they are necessary:

1. A tensor larger than its memory is divided where no instruction's access crosses; each piece becomes a temporary.
   If the program still does not fit, the other tensors are divided as well: each piece leaves and returns alone.
2. In the order by demand, every instruction comes right before the first store to HBM that depends on it.
3. Tiles that still do not fit are spilled (`kernels.program.spilling`), in both orders and to several shares of a
   memory; the attempt in which the busiest engine has the least work is chosen.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from neuroncore_rtl.kernels.program.allocation import OutOfMemory, addresses
from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.spilling import Spill, spill
from neuroncore_rtl.kernels.program.units import SchedulingUnit, units_of
from neuroncore_rtl.spec.config import LINE_BYTES, Config
from neuroncore_rtl.spec.estimate import Estimate
from neuroncore_rtl.spec.isa import Engine, Storage

__all__ = ["fitted", "in_pieces"]

SHARES = (1, 0.9, 0.75, 0.5)
"""Fractions of a memory that tiles may fill; the rest is for early loads, and free bytes may be in small pieces."""

PIECE = 2048
"""Least bytes of a row in a piece of a tensor that fits: copies of shorter rows take as long (docs/rates.md)."""


class _Fitted(NamedTuple):
    """Steps, the copies of tiles among them, the end of HBM, and the estimated cycles of the busiest engine."""

    steps: list[ProgramStep]
    spills: list[Spill]
    end: int
    cycles: float

    @property
    def bytes(self) -> int:
        return sum(spill.size for spill in self.spills)


def fitted(steps: Sequence[ProgramStep], space: Allocator) -> tuple[list[ProgramStep], list[Spill]]:
    """Return steps whose temporaries fit, with the same results, and the copies of spilled tiles among them.

    Raises:
        OutOfMemory: if the tiles of one instruction do not fit.
    """
    start, steps = space.fixed_end(Storage.HBM), in_pieces(steps, space, PIECE)
    attempts = [partial(_with_spills, order, space) for order in (demand_order(steps, space.config), list(steps))]
    found = min(_successes(attempts, space), key=lambda one: (one.cycles, one.bytes))
    if found.end > start:
        space.hbm_bytes("spilled tiles", found.end - start)
    return found.steps, found.spills


def _successes(attempts: Iterable[Callable[[], _Fitted]], space: Allocator) -> list[_Fitted]:
    """Return the results of the attempts that fit, up to the first without spills; HBM ends where it did before.

    Raises OutOfMemory if none fits.
    """
    found: list[_Fitted] = []
    refusals, start = [], space.fixed_end(Storage.HBM)
    for attempt in attempts:
        try:
            found.append(attempt())
        except OutOfMemory as refusal:
            refusals.append(refusal)
        space.set_end(Storage.HBM, start)
        if found and not found[-1].spills:
            break
    if not found:
        raise refusals[0]
    return found


def _with_spills(steps: list[ProgramStep], space: Allocator) -> _Fitted:
    """Move what does not fit in PSUM to SBUF, and then what does not fit in SBUF to HBM.

    The busiest engine has the least work with the share that is chosen; of several, the smallest is.
    """
    spills: list[Spill] = []
    for storage in (Storage.PSUM, Storage.SBUF):
        attempts = [partial(_spilled, steps, space, storage, share) for share in SHARES]
        best = min(reversed(_successes(attempts, space)), key=lambda one: one.cycles)
        space.set_end(Storage.HBM, best.end)
        steps, spills = best.steps, spills + best.spills
    return best._replace(spills=spills)


def _spilled(steps: list[ProgramStep], space: Allocator, storage: Storage, share: float) -> _Fitted:
    found, spills = spill(steps, space, storage, share)
    addresses(found, space, (storage,))
    return _Fitted(found, spills, space.fixed_end(Storage.HBM), _busiest(found, space.config))


def _busiest(steps: Iterable[ProgramStep], config: Config) -> float:
    """Return the estimated cycles of the busiest engine; loads, and stores, of all DMA engines are one."""
    estimate, work = Estimate(config), Counter[tuple[Engine, bool]]()
    for step in steps:
        stores = any(region.storage == Storage.HBM for region in step.instruction.writes)
        work[step.instruction.engine, stores] += estimate.cycles(step.instruction)[0]
    ports = {Engine.DMA: config.hbm_ports}
    return max(cycles / ports.get(engine, 1) for (engine, _), cycles in work.items())


def demand_order(steps: Sequence[ProgramStep], config: Config) -> list[ProgramStep]:
    """Return the steps in the order of demand; a section whose units interleave keeps its order."""
    found: list[ProgramStep] = []
    for _, section in groupby(steps, lambda step: step.section):
        own = list(section)
        units = units_of(own, config)
        order = _by_demand(units)
        found += own if order is None else [own[number] for unit in order for number in unit.steps]
    return found


def _by_demand(units: Sequence[SchedulingUnit]) -> list[SchedulingUnit] | None:
    """Return the units in depth-first order from the stores on; None if units depend on each other in a circle."""
    before: list[list[SchedulingUnit]] = [[] for _ in units]
    for unit in units:
        for later in unit.after:
            before[later.number].append(unit)
    # Units without a store that depends on them come last, in program order.
    waiting = sorted(units, key=lambda unit: not unit.stores)
    found: list[SchedulingUnit] = []
    done, open_ = [False] * len(units), [False] * len(units)
    for demanded in waiting:
        stack = [demanded]
        while stack:
            unit = stack[-1]
            if done[unit.number]:
                stack.pop()
                continue
            needed = [one for one in before[unit.number] if not done[one.number]]
            if needed:
                if any(open_[one.number] for one in needed):
                    return None
                open_[unit.number] = True
                stack += sorted(needed, key=lambda one: -one.number)
                continue
            open_[unit.number] = False
            done[unit.number] = True
            found.append(stack.pop())
    return found


def in_pieces(steps: Sequence[ProgramStep], space: Allocator, least: int = 0) -> list[ProgramStep]:
    """Return the steps with temporaries in the place of tensors that are larger than their memory.

    If `least` is given, also in the place of tensors in SBUF that have several pieces of at least so many bytes.
    """
    large = {
        number
        for number, buffer in space.buffers.items()
        if buffer.size > len(space.room(buffer.storage))
        or (buffer.storage == Storage.SBUF and 0 < 2 * least <= buffer.size)
    }
    if not large:
        return list(steps)
    spans: dict[int, set[tuple[int, int]]] = {number: set() for number in large}
    for step in steps:
        for region in (*step.instruction.writes, *step.instruction.reads):
            if region.storage != Storage.HBM and (number := buffer_of(region.address)) in large:
                low, high = region.span
                spans[number].add((offset_of(low), high - low))
    pieces = {number: list(_pieces(number, own, space, least)) for number, own in spans.items() if own}

    def place(storage: Storage, address: int) -> int:
        number = buffer_of(address)
        if number not in pieces:
            return address
        offset = offset_of(address)
        low, piece = pieces[number][bisect_right(pieces[number], offset, key=lambda one: one[0]) - 1]
        return piece + offset - low

    found = []
    for step in steps:
        if not pieces.keys().isdisjoint(step.buffers):
            moved = step.instruction.moved(place)
            step = step._replace(instruction=moved, buffers=buffers_of((*moved.writes, *moved.reads)))
        found.append(step)
    return found


def _pieces(number: int, spans: Iterable[tuple[int, int]], space: Allocator, least: int) -> Iterator[tuple[int, int]]:
    """Yield the offset of each piece of a buffer, and the address of its temporary, in ascending order."""
    buffer, bank = space.buffers[number], space.config.psum_bank
    runs: list[list[int]] = []
    for low, size in sorted(spans):
        if runs and (low < runs[-1][1] or runs[-1][1] - runs[-1][0] < least):
            runs[-1][1] = max(runs[-1][1], low + size)
        else:
            runs.append([low, low + size])
    for low, high in runs:
        # Accesses keep their alignment, and their places in the banks of PSUM.
        whole = buffer.storage == Storage.PSUM and (high - 1) // bank > low // bank
        start = low - low % (bank if whole else LINE_BYTES)
        yield start, space.temporary(buffer.storage, buffer.name, high - start)
