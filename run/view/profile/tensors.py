"""Names of tensors by address, and occupancy of on-chip memories over time."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.spec.isa import Region, Storage

__all__ = ["Names", "occupancy", "tensor_shape"]


class Names:
    """Names of a program's tensors."""

    def __init__(self, space: Allocator):
        self._buffers = space.buffers
        placed = [*space.hbm_tensors, *space.kept]
        self._places: dict[Storage, list[tuple[int, int, str]]] = {storage: [] for storage in Storage}
        for tensor in placed:
            end = tensor.address + tensor.size * tensor.format.bits // 8
            self._places[tensor.storage].append((tensor.address, end, tensor.name))
        for places in self._places.values():
            places.sort()

    def of(self, ran: Ran) -> dict[str, str]:
        """Return the names of a record's tensors, by operand, such as dst."""
        return {region.name: found for region, buffer in _touched(ran) if (found := self._of(region, buffer))}

    def _of(self, region: Region, buffer: int) -> str | None:
        if buffer:
            return self._buffers[buffer].name
        places = self._places[region.storage]
        at = bisect_right(places, region.span[0], key=lambda place: place[0]) - 1
        return places[at][2] if at >= 0 and region.span[0] < places[at][1] else None


def tensor_shape(ran: Ran) -> str:
    """Return the shape of an instruction's operands, such as "4 x 96"."""
    return " x ".join(map(str, ran.record.instruction.sizes))


def occupancy(run: ProfiledRun, storage: Storage) -> list[tuple[int, int]]:
    """Return the allocated bytes per partition over time, as (cycle, bytes from there on).

    Temporaries are allocated from their first instruction's issue until the last one retires.
    """
    buffers, lives = run.space.buffers, {}
    for ran in run.records:
        for region, number in _touched(ran):
            if number and region.storage == storage:
                begin, end = lives.get(number, (ran.issued, 0))
                lives[number] = min(begin, ran.issued), max(end, run.end_of(ran))
    changes = Counter({0: run.space.fixed_end(storage)})
    for number, (begin, end) in lives.items():
        changes[begin] += buffers[number].size
        changes[end] -= buffers[number].size
    cycles = sorted(changes)
    return list(zip(cycles, accumulate(changes[cycle] for cycle in cycles), strict=True))


def _touched(ran: Ran) -> Iterator[tuple[Region, int]]:
    """Return the regions that a record accesses, writes first, each with its entry of `buffers`."""
    instruction = ran.entry.instruction
    return zip((*instruction.writes, *instruction.reads), ran.entry.buffers, strict=True)
