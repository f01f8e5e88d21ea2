import functools

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import data

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.run.harness.player import Playable
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus import one_bit, operands
from tests.hdl.arith.units import play
from tests.hdl.simulation import assign, drive, simulated, slow
from tests.oracles.words import on_words

SEED = 20260405
ADDITIONS = 1_500
LARGEST_FIELD = 254
ONE = 0x3F800000


def addend(rng: np.random.Generator, sum_word: int) -> int:
    kind, sign = rng.random(), int(rng.integers(2)) << 31
    if kind < 0.04:
        return int(rng.choice(operands.special_fp32()))
    field, fraction = sum_word >> 23 & 0xFF, sum_word & 0x7FFFFF
    reach = (-3, 4) if kind < 0.6 else (-40, 30)
    field = int(rng.integers(30)) if kind > 0.95 else min(max(field + int(rng.integers(*reach)), 0), LARGEST_FIELD)
    same = (fraction + int(rng.integers(-3, 4))) & 0x7FFFFF
    return sign | field << 23 | int(rng.choice([same, int(rng.integers(1 << 23)), 0, 0x7FFFFF]))


@simulated(RunningSum)
async def play_random(ctx, unit, rng: np.random.Generator, partitions: int = 1) -> tuple[int, int, set[str]]:
    totals, compared, wrong, seen = [np.float32(0)] * partitions, 0, 0, set()
    for number in range(ADDITIONS):
        step_adds, step_restarts = rng.random() < 0.9, rng.random() < 0.05
        for partition in range(partitions):
            before = int(totals[partition].view(np.uint32))
            adds = int(step_adds and (partitions == 1 or rng.random() < 0.9))
            restart = int(step_restarts or (rng.random() < 0.3 and before & 0x7F800000 == 0x7F800000))
            y = addend(rng, before)
            drive(ctx, unit, turn=1, y=y, adds=adds, restart=restart)
            await ctx.tick()
            if number and not (adds and restart):
                compared += 1
                wrong += ctx.get(unit.out) != before
            if adds:
                total = np.float32(0) if restart else totals[partition]
                totals[partition] = total = add_fp32(total, np.uint32(y).view(np.float32))
                exponent = int(total.view(np.uint32)) >> 23 & 0xFF
                seen |= {"zero"} if total == 0 else {"subnormal"} if exponent == 0 else set()
                seen |= {"infinite"} if np.isinf(total) else {"nan"} if np.isnan(total) else set()
        if partitions > 1:
            drive(ctx, unit, turn=0, y=addend(rng, 0), adds=0, restart=1)
            for _ in range(int(rng.choice([0, 0, 1, 2, 5]))):
                await ctx.tick()
    return compared, wrong, seen


@pytest.mark.parametrize("partitions", [1, 2, *slow(4)])
def test_every_sum_is_that_of_golden(partitions, rng):
    compared, wrong, seen = play_random(rng, partitions)
    assert compared > partitions * ADDITIONS * 0.8 and seen == {"zero", "subnormal", "infinite", "nan"}
    assert wrong == 0


@simulated(RunningSum)
async def sums(ctx, unit, reset, addends: tuple[np.ndarray, ...], reset_after: int | None = None) -> list[int]:
    found = []
    for together in zip(*(words.tolist() for words in addends), strict=True):
        for cycle, word in enumerate((*together, 0)):
            ctx.set(reset, cycle == reset_after)
            drive(ctx, unit, y=word, adds=cycle < len(together), restart=cycle == 0)
            await ctx.tick()
        found.append(ctx.get(unit.out))
    return found


def test_one_bit_decides():
    x, y = one_bit.lone_bits()
    half = np.arange(len(x)) % 4 < 2  # of the four pairs of signs: equal and opposite ones
    special = np.uint32([0, 1, 0x7FFFFF, 0x800000, ONE, 0x7F7FFFFF, FP32.infinity, FP32.nan])
    special = np.concatenate([special, special | 1 << 31])
    power = np.arange(1, 60, dtype=np.uint32) << 23  # less its neighbour
    x = np.concatenate([x[half], np.repeat(special, len(special)), power, power - 1])
    y = np.concatenate([y[half], np.tile(special, len(special)), power - 1 | 1 << 31, power | 1 << 31])
    assert len(x) > 3_000
    assert sums((x, y)) == golden_sums(x, y)


def golden_sums(*addends: np.ndarray) -> list[int]:
    return functools.reduce(functools.partial(on_words, add_fp32), addends, np.zeros_like(addends[0])).tolist()


class PlayedSum(Playable):
    def __init__(self):
        super().__init__(data.StructLayout({"y": 32, "adds": 1, "restart": 1}), RunningSum.LATENCY)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = RunningSum()
        assign(m, unit, y=self.word.y, adds=self.word.adds & self.valid, restart=self.word.restart)
        assign(m, self, result=unit.out)
        self.delay_valid(m)
        return m


@pytest.mark.slow
def test_a_million_sums(rng):
    x, y = operands.add_cases(rng, 1_000_000)
    words = np.stack([x, y, np.zeros_like(x)], axis=1)
    flags = {"adds": (1, 1, 0), "restart": (1, 0, 0)}
    cases = {"y": words.ravel()} | {name: np.resize(np.uint32(bits), words.size) for name, bits in flags.items()}
    results, unknown = play(PlayedSum(), cases, "verilator")
    assert not unknown.size
    wrong = results.reshape(words.shape)[:, :2] != np.stack([golden_sums(x), golden_sums(x, y)], axis=1)
    assert wrong.size >= 2_000_000 and not wrong.any()


def test_infinity_stays_after_further_addends():
    infinity, others = FP32.infinity, [ONE, FP32.infinity, 1, 0x7F7FFFFF]
    sign = np.repeat(np.uint32([0, 1 << 31]), len(others))
    x, y = sign | infinity, (sign ^ 1 << 31) | np.uint32(others * 2)
    assert sums((x, x, y)) == golden_sums(x, x, y)


@pytest.mark.parametrize("words", [(ONE, ONE), (ONE | 1 << 31, ONE), (0x7F800000, ONE), (0xFF800000, 0x7F800000)])
@pytest.mark.parametrize("reset_after", (1, 2))
def test_reset_clears_the_sum(words, reset_after):
    assert sums(np.uint32(words).reshape(2, 1), reset_after) == [0]
