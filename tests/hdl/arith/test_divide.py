# amaranth: UnusedElaboratable=no

"""The divider against golden in bulk, its special values by name, and its handshake."""

import numpy as np
from amaranth.sim import Simulator

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith import divide
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.pack import pack_fp32
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.harness.iterative import play_pairs
from neuroncore_rtl.tb.stimulus.pairs import divide_cases, special_pairs

BULK = {"verilator": 200_000, "icarus": 3_000}


def quotients(a, b):
    return arith.divide_fp32(a.view(np.float32), b.view(np.float32)).view(np.uint32)


def test_quotients_are_those_of_golden(rng, sim):
    a, b = divide_cases(rng, BULK[sim])
    if sim == "verilator":
        a, b = (np.concatenate(parts) for parts in zip((a, b), special_pairs(), strict=True))
    np.testing.assert_array_equal(play_pairs(Fp32Divider(), a, b, sim), quotients(a, b))
    assert len(a) >= BULK[sim]


def test_divider_that_forgets_the_remainder_is_seen(rng, monkeypatch):
    monkeypatch.setattr(divide, "pack_fp32", lambda m, quotient, field, inexact: pack_fp32(m, quotient, field))
    a, b = divide_cases(rng, 2_000)
    wrong = play_pairs(Fp32Divider(), a, b, "icarus") != quotients(a, b)
    assert 0 < wrong.sum() < len(a)


KNOWN = {
    "1 / 3": (0x3F800000, 0x40400000, 0x3EAAAAAB),
    "6 / -2": (0x40C00000, 0xC0000000, 0xC0400000),
    "1 / 0": (0x3F800000, 0x00000000, 0x7F800000),
    "1 / -0": (0x3F800000, 0x80000000, 0xFF800000),
    "-Inf / -0": (0xFF800000, 0x80000000, 0x7F800000),
    "-0 / smallest": (0x80000000, 0x00000001, 0x80000000),
    "0 / -0": (0x00000000, 0x80000000, FP32.nan),
    "Inf / -Inf": (0x7F800000, 0xFF800000, FP32.nan),
    "NaN is canonical": (0xFFC12345, 0x3F800000, FP32.nan),
    "1 / NaN": (0x3F800000, 0x7F800001, FP32.nan),
    "max / -Inf": (0x7F7FFFFF, 0xFF800000, 0x80000000),
    "overflow": (0x7F7FFFFF, 0x00000001, 0x7F800000),
    "just overflows": (0x7F7FFFFF, 0x3F7FFFFF, 0x7F800000),
    "rounds up to the largest": (0x7F7FFFFE, 0x3F7FFFFF, 0x7F7FFFFF),
    "tie at half the smallest goes to zero": (0x00000001, 0x40000000, 0x00000000),
    "just above that tie": (0x00000001, 0x3FFFFFFF, 0x00000001),
    "tie between subnormals": (0x00000003, 0x40000000, 0x00000002),
    "far below the smallest": (0x00000001, 0x7F7FFFFF, 0x00000000),
    "rounds up into the smallest normal": (0x00FFFFFF, 0x40000000, 0x00800000),
    "subnormal / subnormal": (0x00000005, 0x00000003, 0x3FD55555),
    "largest subnormal": (0x00800000, 0x3F800001, 0x007FFFFF),
}
"""Pairs and their quotients, by what is special about them."""


def test_known_quotients():
    a, b, expected = (np.array(column, np.uint32) for column in zip(*KNOWN.values(), strict=True))
    got = play_pairs(Fp32Divider(), a, b, "icarus")
    assert dict(zip(KNOWN, map(hex, got), strict=True)) == dict(zip(KNOWN, map(hex, expected), strict=True))


def test_result_appears_after_the_latency_and_stays():
    divider = Fp32Divider()
    pairs = [(0x3F800000, 0x40400000), (0x40C00000, 0xC0000000)]
    seen = []

    async def bench(ctx):
        for a, b in pairs:
            ctx.set(divider.start, 1)
            ctx.set(divider.a, a)
            ctx.set(divider.b, b)
            for _ in range(2 * divider.LATENCY):
                seen.append(ctx.get(divider.out))
                await ctx.tick()
                ctx.set(divider.start, 0)

    simulator = Simulator(divider)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    latency = divider.LATENCY
    assert seen == [0] * latency + [0x3EAAAAAB] * 2 * latency + [0xC0400000] * latency
