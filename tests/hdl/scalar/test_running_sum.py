"""The running sum of deep lanes against golden: additions that depend on each other, every cycle."""

import functools

import numpy as np
import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.lib import data

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.run.harness.player import Playable
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.one_bit import lone_bits
from neuroncore_rtl.tb.stimulus.operands import add_cases, special_fp32
from tests.hdl.arith.units import play
from tests.hdl.simulation import drive, simulate, simulated
from tests.hdl.slow import slow
from tests.oracles.words import on_words

SEED = 20260405
ADDITIONS = 1_500
LARGEST_FIELD = 254
ONE = 0x3F800000


def addend(rng: np.random.Generator, sum_word: int) -> int:
    """Return a word that is worth adding to a sum: near it, of the same fraction or a neighbour's, or far below."""
    kind, sign = rng.random(), int(rng.integers(2)) << 31
    if kind < 0.04:
        return int(rng.choice(special_fp32()))
    field, fraction = sum_word >> 23 & 0xFF, sum_word & 0x7FFFFF
    reach = (-3, 4) if kind < 0.6 else (-40, 30)
    field = int(rng.integers(30)) if kind > 0.95 else min(max(field + int(rng.integers(*reach)), 0), LARGEST_FIELD)
    same = (fraction + int(rng.integers(-3, 4))) & 0x7FFFFF
    return sign | field << 23 | int(rng.choice([same, int(rng.integers(1 << 23)), 0, 0x7FFFFF]))


def played(rng: np.random.Generator) -> tuple[int, int, set[str]]:
    """Return how many sums were compared, how many were wrong, and what occurred."""
    unit = RunningSum()

    async def bench(ctx):
        total, compared, wrong, seen = np.float32(0), 0, 0, set()
        for cycle in range(ADDITIONS):
            before = int(total.view(np.uint32))
            y = addend(rng, before)
            adds = int(rng.random() < 0.9)
            restart = int(rng.random() < (0.3 if before & 0x7F800000 == 0x7F800000 else 0.04))
            for name, value in {"y": y, "adds": adds, "restart": restart}.items():
                ctx.set(getattr(unit, name), value)
            await ctx.tick()
            # A sum that is restarted is not looked at any more.
            if cycle and not (adds and restart):
                compared += 1
                wrong += ctx.get(unit.out) != before
            if adds:
                total = add_fp32(np.float32(0) if restart else total, np.uint32(y).view(np.float32))
                exponent = int(total.view(np.uint32)) >> 23 & 0xFF
                seen |= {name for name, met in {
                    "zero": total == 0, "subnormal": exponent == 0 and total != 0, "infinite": np.isinf(total),
                    "nan": np.isnan(total),
                }.items() if met}  # fmt: skip
        return compared, wrong, seen

    return simulate(unit, bench)


def test_every_sum_is_that_of_golden(rng):
    compared, wrong, seen = played(rng)
    assert compared > ADDITIONS * 0.8 and seen == {"zero", "subnormal", "infinite", "nan"}
    assert wrong == 0


@pytest.mark.parametrize("partitions", [2, *slow(4)])
@simulated(lambda partitions: RunningSum(partitions))
async def test_every_partition_has_a_sum(ctx, unit, partitions, rng):
    """Partitions take turns, with pauses between their steps; of each step some add, or begin again."""
    totals, compared, wrong = [np.float32(0)] * partitions, 0, 0
    for number in range(ADDITIONS):
        of_step = rng.random() < 0.9, rng.random() < 0.05
        for partition in range(partitions):
            before = int(totals[partition].view(np.uint32))
            adds = int(of_step[0] and rng.random() < 0.9)
            restart = int(of_step[1] or (rng.random() < 0.3 and before & 0x7F800000 == 0x7F800000))
            y = addend(rng, before)
            drive(ctx, unit, turn=1, y=y, adds=adds, restart=restart)
            await ctx.tick()
            if number and not (adds and restart):
                compared += 1
                wrong += ctx.get(unit.out) != before
            if adds:
                total = np.float32(0) if restart else totals[partition]
                totals[partition] = add_fp32(total, np.uint32(y).view(np.float32))
        drive(ctx, unit, turn=0, y=addend(rng, 0), adds=0, restart=1)
        for _ in range(int(rng.choice([0, 0, 1, 2, 5]))):
            await ctx.tick()
    assert compared > partitions * ADDITIONS * 0.8 and wrong == 0


def sums(*addends: np.ndarray, reset_after: int | None = None) -> list[int]:
    """Return the sum of the first of each addend, of the second, and so on; each begins with a restart.

    A reset in one of the cycles leaves nothing of it.
    """
    reset = Signal()
    unit = RunningSum()

    async def bench(ctx):
        found = []
        for together in zip(*(words.tolist() for words in addends), strict=True):
            for cycle, word in enumerate((*together, 0)):
                ctx.set(reset, cycle == reset_after)
                drive(ctx, unit, y=word, adds=cycle < len(together), restart=cycle == 0)
                await ctx.tick()
            found.append(ctx.get(unit.out))
        return found

    return simulate(ResetInserter(reset)(unit), bench)


def test_one_bit_decides():
    """Of what is shifted out, of a NaN, of numbers that cancel but for it; and all pairs of special numbers."""
    x, y = lone_bits()
    opposite = (x ^ y) >> 31 == 1
    special = np.uint32([0, 1, 0x7FFFFF, 0x800000, ONE, 0x7F7FFFFF, FP32.infinity, FP32.nan])
    special = np.concatenate([special, special | 1 << 31])
    x = np.concatenate([x[opposite][::2], x[~opposite][::8], np.repeat(special, len(special))])
    y = np.concatenate([y[opposite][::2], y[~opposite][::8], np.tile(special, len(special))])
    assert len(x) > 1_000
    assert sums(x, y) == in_golden(x, y)


def in_golden(*addends: np.ndarray) -> list[int]:
    """Return what :func:`sums` does, of golden."""
    return functools.reduce(functools.partial(on_words, add_fp32), addends, np.zeros_like(addends[0])).tolist()


class PlayedSum(Playable):
    """The unit with its inputs in one word; a cycle without one adds nothing."""

    def __init__(self):
        super().__init__(data.StructLayout({"y": 32, "adds": 1, "restart": 1}), RunningSum.LATENCY)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = RunningSum()
        m.d.comb += [
            unit.y.eq(self.word.y),
            unit.adds.eq(self.word.adds & self.valid),
            unit.restart.eq(self.word.restart),
            self.result.eq(unit.out),
        ]
        self.delay_valid(m)
        return m


@pytest.mark.slow
def test_a_million_sums(rng):
    """Of pairs, the first of which is put in the sum's place. A restart comes a cycle after the last addend."""
    x, y = add_cases(rng, 1_000_000)
    words = np.stack([x, y, np.zeros_like(x)], axis=1)
    flags = {"adds": (1, 1, 0), "restart": (1, 0, 0)}
    cases = {"y": words.ravel()} | {name: np.resize(np.uint32(bits), words.size) for name, bits in flags.items()}
    results, unknown = play(PlayedSum(), cases, "verilator")
    assert not unknown.size
    wrong = results.reshape(words.shape)[:, :2] != np.stack([in_golden(x), in_golden(x, y)], axis=1)
    assert wrong.size >= 2_000_000 and not wrong.any()


def test_a_power_of_two_and_what_is_next_to_it():
    """What is left is one bit, far below both, or not as far as the smallest exponent."""
    power = np.arange(1, 60, dtype=np.uint32) << 23
    for x, y in ((power, power - 1 | 1 << 31), (power - 1, power | 1 << 31)):
        assert sums(x, y) == in_golden(x, y)


def test_infinity_stays():
    """Also once another one has been added to it."""
    infinity, others = FP32.infinity, [ONE, FP32.infinity, 1, 0x7F7FFFFF]
    sign = np.repeat(np.uint32([0, 1 << 31]), len(others))
    x, y = sign | infinity, (sign ^ 1 << 31) | np.uint32(others * 2)
    assert sums(x, x, y) == in_golden(x, x, y)


@pytest.mark.parametrize("words", [(ONE, ONE), (ONE | 1 << 31, ONE), (0x7F800000, ONE), (0xFF800000, 0x7F800000)])
@pytest.mark.parametrize("reset_after", (1, 2))
def test_reset_clears_the_sum(words, reset_after):
    """And what is on its way to it."""
    assert sums(*np.uint32(words).reshape(2, 1), reset_after=reset_after) == [0]


@pytest.mark.parametrize("part", ["_far", "_near"])
def test_a_wrong_way_is_noticed(part, rng, monkeypatch):
    right = getattr(RunningSum, part)

    def wrong(self, *arguments):
        first, *rest = right(self, *arguments)
        return first ^ 1, *rest

    monkeypatch.setattr(RunningSum, part, wrong)
    assert played(rng)[1] > 10
