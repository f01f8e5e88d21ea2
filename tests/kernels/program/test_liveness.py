"""Live accesses to memory: every access that meets a region is found, and compared with it once."""

from collections import Counter

from neuroncore_rtl.kernels.program import liveness
from neuroncore_rtl.kernels.program.footprint import overlap
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

    def counted(one: Region, other: Region) -> bool:
        compared[one.address, other.address] += 1
        return overlap(one, other)

    monkeypatch.setattr(liveness, "overlap", counted)
    live = liveness.LiveRegions()
    for lane in range(8):
        live.add(lane, lane, [], liveness.reaches([rows(64 * lane, 200)]))
    assert live.last(liveness.reaches([rows(64 * 8, 200), rows(PAGE, 200)]), written=True) == {0: 0}
    assert max(compared.values()) == 1 and len(compared) > 8
