"""Live accesses to memory: every access that meets a region is found, and compared with it once; memory pressure."""

from collections import Counter

import pytest

from neuroncore_rtl.kernels.program import Program, liveness
from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.kernels.program.memory_pressure import MemoryPressure
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import INT8
from neuroncore_rtl.spec.isa import Region, Storage

PAGE = 1 << liveness.PAGE_BITS[Storage.HBM]


def rows(first: int, count: int, pitch: int = PAGE // 4) -> Region:
    """Return 64 elements of `count` rows of HBM."""
    return Region("x", Storage.HBM, 0, 1, first, 1, ((count, pitch), (64, 1)))


def test_the_last_access_to_each_region_is_found_across_pages(rng):
    drawn = [
        rows(64 * int(rng.integers(12)) + PAGE * int(rng.integers(4)), int(rng.choice([1, 2, 9, 30])))
        for _ in range(60)
    ]
    live, found = liveness.LiveRegions(ordered=False), []
    for number, region in enumerate(drawn):
        [reach] = liveness.reaches([region])
        before = [n for n in range(number) if overlap(drawn[n], region)]
        seen = set(live.last([reach], written=True))
        # A write hides earlier accesses that it covers, which the later one conflicts with.
        assert seen <= set(before) and bool(seen) == bool(before) and max(seen, default=-1) == max(before, default=-1)
        found += before
        live.add(number, number, [], [reach])
    assert len(found) > 60


def test_two_regions_that_share_many_pages_are_compared_once(monkeypatch):
    compared = Counter()

    def count_overlap(one: Region, other: Region) -> bool:
        compared[one.address, other.address] += 1
        return overlap(one, other)

    monkeypatch.setattr(liveness, "overlap", count_overlap)
    live = liveness.LiveRegions()
    for lane in range(8):
        live.add(lane, lane, [], liveness.reaches([rows(64 * lane, 200)]))
    assert live.last(liveness.reaches([rows(64 * 8, 200), rows(PAGE, 200)]), written=True) == {0: 0}
    assert max(compared.values()) == 1 and len(compared) > 8


UNITS = 9


@pytest.mark.parametrize(
    ("loads", "results", "load_fits", "result_fits"),
    [(2, 2, True, True), (5, 0, False, True), (1, 4, False, True), (0, 6, True, True), (0, 7, False, False)],
)
def test_loads_leave_a_quarter_to_results_and_may_fill_an_eighth(loads, results, load_fits, result_fits):
    """Each unit has a buffer of an eighth of SBUF; unit 0, which has not started, needs one, too."""
    space = Program(preset_named("tiny")).space
    size = len(space.room(Storage.SBUF)) // 8
    for _ in range(UNITS):
        space.sbuf("tile", INT8, (size,))
    room = MemoryPressure([[number] for number in space.buffers], (), space, {Storage.SBUF: 1.0, Storage.PSUM: 1.0})
    for unit in range(1, 1 + loads + results):
        room.take(unit, 0, load=unit <= loads)
    assert [room.fits(UNITS - 1, 0, load) for load in (True, False)] == [load_fits, result_fits]
    for unit in range(1, 1 + loads + results):
        room.give(unit)
    assert room.fits(UNITS - 1, 0, load=True)
