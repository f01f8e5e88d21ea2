# amaranth: UnusedElaboratable=no

"""The power unit against golden in bulk, and its handshake."""

import numpy as np
from amaranth.sim import Simulator

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.spec.power import LOGARITHM
from neuroncore_rtl.tb.harness.iterative import play_pairs
from neuroncore_rtl.tb.stimulus.pairs import power_cases, special_pairs

BULK = {"verilator": 120_000, "icarus": 2_000}


def powers(a, b):
    return arith.power_fp32(a.view(np.float32), b.view(np.float32)).view(np.uint32)


def test_powers_are_those_of_golden(rng, sim):
    a, b = power_cases(rng, BULK[sim])
    if sim == "verilator":
        a, b = (np.concatenate(parts) for parts in zip((a, b), special_pairs(), strict=True))
    np.testing.assert_array_equal(play_pairs(Fp32Power(), a, b, sim), powers(a, b))
    assert len(a) >= BULK[sim]


def test_wrong_word_of_a_table_is_seen(rng, monkeypatch):
    """By the results that use its row, and by no others."""
    table = Fp32Power._table

    def with_a_wrong_word(self, m, words, row, name):
        wrong = 37 if words is LOGARITHM else None
        return table(self, m, [word ^ (number == wrong) << 24 for number, word in enumerate(words)], row, name)

    monkeypatch.setattr(Fp32Power, "_table", with_a_wrong_word)
    a, b = power_cases(rng, 2_000)
    wrong = play_pairs(Fp32Power(), a, b, "icarus") != powers(a, b)
    normal = (a & 0x7F800000) != 0
    assert wrong.any() and set(a[wrong & normal] >> 17 & 0x3F) == {37}


def test_result_appears_after_the_latency_and_stays():
    unit = Fp32Power()
    pairs = [(0x40800000, 0x3F000000), (0x3F800000, 0x7FC00000), (0x40400000, 0x40000000)]
    seen = []

    async def bench(ctx):
        for a, b in pairs:
            ctx.set(unit.start, 1)
            ctx.set(unit.a, a)
            ctx.set(unit.b, b)
            for _ in range(2 * unit.LATENCY):
                seen.append(ctx.get(unit.out))
                await ctx.tick()
                ctx.set(unit.start, 0)

    simulator = Simulator(unit)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    latency = unit.LATENCY
    expected = [0] * latency + [0x40000000] * 2 * latency + [0x3F800000] * 2 * latency + [0x41100000] * latency
    assert seen == expected
