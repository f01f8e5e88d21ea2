from collections import deque

import pytest

from neuroncore_rtl.hdl.dma.job import JobRows
from neuroncore_rtl.hdl.dma.rows import RowReader
from neuroncore_rtl.hdl.memory.port import LineRead, OnChipStorage
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from tests.hdl.simulation import WARM_UP, drive, expect, pulse, random_bits, simulated, slow

SEED = 31337
SIZE = 16
FIELDS = JobRows.as_shape().members


def random_rows(rng, count: int, fails: bool, bits: int = 32) -> tuple[dict[str, int], list[int]]:
    limit, numbers = 1 << bits - 1 | random_bits(rng, bits - 1), []
    rows = {name: random_bits(rng, shape.width) for name, shape in FIELDS.items()}
    rows |= {"last": count - 1, "on": 1, "skip": int(not fails), "address": rows["address"] & ~3, "limit": limit}
    rows["step"] -= 1 << FIELDS["step"].width - 1
    for _ in range(count):
        chance = rng.random()
        if chance < 0.1 and not (fails and not numbers):
            number = min(limit | 1 << int(rng.integers(32)), (1 << 32) - 1)
        elif chance < 0.3:
            number = max(0, limit - int(chance < 0.2))
        else:
            number = int(rng.integers(limit))
        numbers.append(number)
    return rows, numbers


def expected_of(rows: dict[str, int], numbers: list[int]) -> dict[str, list[tuple[int, ...]]]:
    learned = {"src": [], "dst": []}
    for number in numbers:
        beyond = number >= rows["limit"]
        offset = (number * rows["step"] << rows["size"]) % (1 << HBM_ADDRESS_BITS)
        for name, side in learned.items():
            of_this = rows["scatter"] == (name == "dst")
            side.append((int(beyond and not rows["skip"]), int(beyond and rows["skip"]), offset if of_this else 0))
    return learned


@pytest.mark.parametrize("latency", [*slow(0), 1])
@pytest.mark.parametrize("stalls", [*slow(((0, 0, 0),), ((0.5, 0, 0),), ((0, 0.7, 0.2),)), (0.2, 0.3, 0.9)])
@simulated(lambda latency: RowReader(SIZE, latency), warm_up=WARM_UP)
async def test_rows_of_jobs_in_order_and_the_first_failing_number(ctx, dut, stalls, latency, rng):
    counts = [1, 2, 63, 64, 65, 128, *(int(n) for n in rng.integers(1, 90, 8))]
    jobs = [random_rows(rng, 8, False, bits) for bits in range(1, 33)]
    jobs += [random_rows(rng, count, place > 10) for place, count in enumerate(counts)]
    lines = deque([None] * LineRead.LATENCY[latency])
    bad = []
    for rows, numbers in jobs:
        wanted, found, requested = expected_of(rows, numbers), {"src": [], "dst": []}, 0
        drive(ctx, dut, load=1, rows=rows, **{"line.ready": 0})
        await ctx.tick()
        drive(ctx, dut, load=0, rows=dict.fromkeys(FIELDS, 0))
        cycle, deepest = 0, 0
        while any(len(found[name]) < len(numbers) for name in found) or cycle < 10:
            line_ready, *takes = (rng.random() >= stall for stall in stalls)
            takes = {name: take and cycle % 500 >= 250 for name, take in zip(found, takes, strict=True)}
            drive(ctx, dut, **{"line.ready": line_ready} | {f"{name}.ready": take for name, take in takes.items()})
            line = lines.popleft()
            ctx.set(dut.line.data, random_bits(rng, 8 * SIZE) if line is None else line)
            lines.append(None)
            if ctx.get(dut.line.valid & dut.line.ready):
                partition = (rows["partition"] + requested) % (1 << len(dut.line.partition))
                start, place = rows["address"] // SIZE * SIZE, 8 * (rows["address"] % SIZE)
                expect(ctx, dut.line, storage=OnChipStorage.SBUF, partition=partition, address=start)
                noise = random_bits(rng, 8 * SIZE) & ~((1 << 32) - 1 << place)
                lines[-1] = noise | numbers[requested] << place
                requested += 1
            for name, take in takes.items():
                if take and ctx.get(getattr(dut, name).valid):
                    row = ctx.get(getattr(dut, name).payload)
                    found[name].append((row.bad, row.skip, row.offset))
            in_flight = requested - min(map(len, found.values()))
            deepest = max(deepest, in_flight)
            assert in_flight <= RowReader.AHEAD + 2 * latency
            if requested < len(numbers) or any(one is not None for one in lines):
                assert ctx.get(dut.busy)
            await ctx.tick()
            cycle += 1
            assert cycle < 30 * len(numbers) + 500
        assert found == wanted
        assert deepest >= min(len(numbers), RowReader.AHEAD)
        assert not ctx.get(dut.busy) and not ctx.get(dut.line.valid)
        bad = (bad + [n for n in numbers if n >= rows["limit"] and not rows["skip"]])[:1]
        assert ctx.get(dut.failed) == bool(bad) and (not bad or [ctx.get(dut.number)] == bad)


@pytest.mark.parametrize(("latency", "first"), [(0, 6), (1, 9)])
@simulated(lambda latency: RowReader(SIZE, latency))
async def test_a_row_per_cycle_or_two_with_registered_ports(ctx, dut, latency, first, rng):
    rows, numbers = random_rows(rng, 60, False)
    drive(ctx, dut, rows=rows, **{"line.ready": 1, "src.ready": 1, "dst.ready": 1})
    await pulse(ctx, dut.load)
    cycles = [cycle for cycle in range(200) if (await ctx.tick().sample(dut.src.valid))[-1]]
    assert (cycles[0], len(cycles)) == (first, len(numbers))
    assert cycles[-1] - cycles[0] == (len(numbers) - 1) * (1 + latency)
