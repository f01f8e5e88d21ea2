from fractions import Fraction

import numpy as np
import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.golden.arith import add_fp32, multiply_add_fp32
from neuroncore_rtl.golden.vector.statistics import bn_aggr, bn_stats
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.vector.alu import VectorAlu
from neuroncore_rtl.hdl.vector.stats import SHARES, Sample, Statistics
from neuroncore_rtl.spec import timing
from tests.hdl.simulation import assign, drive, simulated, slow
from tests.hdl.vector.units import pause, random_words, rest

SEED = 20260403
LATENCIES = (2, *slow(1, 6))
OPERATIONS = ("sum0", "fused0", "sum1", "fused1", "divide")


class WithUnits(wiring.Component):
    x: In(32)
    sample: In(Sample)
    share: In(32)
    number: In(3)
    out: Out(32)
    quotient: Out(32)
    taken: Out(5)

    def __init__(self, latency):
        super().__init__()
        self.statistics = Statistics(latency)

    def elaborate(self, platform):
        m = Module()
        m.submodules.statistics = statistics = self.statistics
        m.submodules.divider = divider = Fp32Divider()
        for number in range(2):
            m.submodules[f"alu{number}"] = alu = VectorAlu(statistics.latency)
            assign(m, alu, sum=getattr(statistics, f"sum{number}"), fused=getattr(statistics, f"fused{number}"))
            assign(m, statistics, **{f"summed{number}": alu.summed, f"multiplied{number}": alu.multiplied})
        late_share = self.share
        for _ in range(statistics.latency):
            share, late_share = late_share, Signal(32)
            m.d.sync += late_share.eq(share)
        assign(m, statistics, x=self.x, sample=self.sample, share=late_share, number=self.number, quotient=divider.out)
        assign(m, divider, start=statistics.divide, a=statistics.numerator, b=statistics.denominator)
        taken = Cat(*(getattr(statistics, name).takes for name in OPERATIONS[:-1]), statistics.divide)
        assign(m, self, out=statistics.out, quotient=divider.out, taken=taken)
        return m


def test_shares_are_the_nearest_words():
    for k, word in enumerate(SHARES, start=1):
        significand, exponent = word & 0x7FFFFF | 0x800000, (word >> 23) - 150
        error = abs(Fraction(significand) * Fraction(2) ** exponent - Fraction(1, k))
        assert error <= Fraction(2) ** exponent / 2, k
    assert len(SHARES) == 256


async def issue(ctx, unit, word, idle: int, **sample):
    drive(ctx, unit, x=word, sample=sample)
    await ctx.tick()
    ctx.set(unit.sample, {})
    await rest(ctx, idle)


@simulated(WithUnits)
async def measured_stats(ctx, unit, sequences, rng, share_of=SHARES.__getitem__, latency=1):
    interval, results = unit.statistics.interval, []
    for words in sequences:
        for position, word in enumerate(words.tolist()):
            ctx.set(unit.share, share_of(position // 2))
            idle = interval - 1 + pause(rng)
            await issue(ctx, unit, word, idle, update=1, odd=position % 2, first=position < 2)
        # As in a RESULT step: result k is read in the k-th interval after the last element, in a later stage.
        await rest(ctx, unit.statistics.result_delay)
        found = []
        for number in range(6):
            ctx.set(unit.number, number)
            found.append(ctx.get(unit.out))
            await rest(ctx, interval)
        results.append(found)
    return np.array(results, np.uint32)[:, NUMBERS]


NUMBERS = [1, 2, 4, 5]
"""Indices of the BN_STATS results that are statistics; the results at other indices are counts of elements."""


@pytest.mark.parametrize("latency", LATENCIES)
def test_stats_are_those_of_golden(rng, latency):
    # A single element shows the state of the odd elements.
    lengths = [1, 2, 3, 511 if latency == 1 else 40, 1, *rng.integers(1, 60, 12 if latency == 1 else 4).tolist()]
    sequences = [random_words(rng, length, special=0.02 * (number % 3)) for number, length in enumerate(lengths)]
    sequences += [np.zeros(length, np.uint32) for length in (1, 2)]
    expected = np.array([bn_stats(words)[NUMBERS] for words in sequences])
    found = measured_stats(sequences, rng, latency=latency)
    assert (found == expected).all(axis=1).tolist() == [True] * len(sequences)


def test_the_mean_moves_by_the_distance_times_any_share(rng):
    words, shares = random_words(rng, 60, special=0), rng.uniform(-0.5, 2, 30).astype(np.float32)
    shares[rng.permutation(30)[:6]] = np.ldexp(rng.uniform(1, 2, 6), [1, 2, -66, -100, -149, 5])
    expected = []
    for parity in (0, 1):
        mean = m2 = np.float32(0)
        for x, share in zip(words[parity::2].view(np.float32), shares, strict=True):
            distance = add_fp32(x, -mean)
            mean = multiply_add_fp32(distance, share, mean)
            m2 = multiply_add_fp32(distance, add_fp32(x, -mean), m2)
        expected += [mean, m2]
    assert np.isfinite(expected).all()
    found = measured_stats([words], rng, shares.view(np.uint32).tolist().__getitem__)
    assert found.tolist() == [np.array(expected).view(np.uint32).tolist()]


def aggregate_sequences(rng):
    sequences = []
    for counts in ([0, 3, 0, 7, 1], [5, 0, 0, 2], [0, 4], [6, 0]):
        values = [np.array(counts), rng.normal(size=len(counts)), rng.uniform(1, 9, len(counts))]
        sequences.append(np.stack(values, axis=1).astype(np.float32).view(np.uint32).reshape(-1))
    for sets in (1, 2, 3, 5, 8, 17):
        words = random_words(rng, 3 * sets, special=0.1 * (sets % 2)).reshape(sets, 3)
        counts = np.where(rng.random(sets) < 0.6, rng.choice([0, 1, 2, 3, 77, 256], sets), rng.uniform(0, 9, sets))
        counts = counts.astype(np.float32)
        words[:, 0] = np.where(rng.random(sets) < 0.9, counts.view(np.uint32), words[:, 0])
        sequences.append(words.reshape(-1))
    sequences.append(np.array([0, 0, 0, 1 << 31, 0, 0], np.uint32))
    return sequences


@pytest.mark.parametrize("latency", LATENCIES)
@simulated(WithUnits)
async def test_aggregates_are_those_of_golden(ctx, unit, latency, rng):
    interval = unit.statistics.set_interval
    for words in aggregate_sequences(rng):
        for position, word in enumerate(words.tolist()):
            kind = ("count", "mean", "m2")[position % 3]
            await issue(ctx, unit, word, interval - 1 + pause(rng), first=position == 0, **{kind: 1})
        # A step reads the mean in this cycle; the next one requests the variance.
        await rest(ctx, interval)
        await issue(ctx, unit, word, Fp32Divider.LATENCY - 1, variance=1)
        ctx.set(unit.number, 1)
        assert [ctx.get(unit.out), ctx.get(unit.quotient)] == bn_aggr(words).tolist()


def test_a_set_costs_at_most_the_published_cycles():
    assert 3 * Statistics().set_interval <= 13


@pytest.mark.parametrize("latency", LATENCIES)
@simulated(WithUnits)
async def test_units_are_requested_only_when_needed(ctx, unit, latency):
    step, quotient = unit.statistics.latency, timing.quotient_wait(latency, unit.statistics.set_interval)
    needed = {
        "update": {"sum0": [0], "fused0": [step], "sum1": [2 * step], "fused1": [3 * step]},
        "count": {"sum0": [0], "divide": [step]},
        "mean": {"sum0": [0], "fused1": [step]},
        "m2": {"sum1": [0], "fused0": [quotient], "fused1": [quotient, quotient + step]},
        "variance": {"divide": [0]},
        "odd": {},
        "first": {},
    }
    assert set(needed) == {name for name, _ in Sample.as_shape()}
    found = {}
    for kind in needed:
        found[kind] = {}
        for cycle in range(quotient + 4 * latency):
            drive(ctx, unit, sample={kind: int(cycle == 0)})
            taken = ctx.get(unit.taken)
            for number, name in enumerate(OPERATIONS):
                if taken >> number & 1:
                    found[kind].setdefault(name, []).append(cycle)
            await ctx.tick()
    assert found == needed
