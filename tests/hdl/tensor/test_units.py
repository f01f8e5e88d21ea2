import numpy as np
import pytest
from amaranth import Value

from neuroncore_rtl.golden.arith import fma_fp32
from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.hdl.primitives.delay_line import DelayLine
from neuroncore_rtl.hdl.tensor.array import SystolicArray, row_skew, tile_count
from neuroncore_rtl.hdl.tensor.tile import RowEvents
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from tests.hdl.simulation import simulated, slow

SEED = 1977


@pytest.mark.parametrize("delay", range(10))
@simulated(lambda delay: DelayLine(40, delay))
async def test_delay_line_repeats_every_word_after_its_delay(ctx, line, delay, rng):
    words, seen = rng.integers(0, 1 << 40, 50).tolist(), []
    for word in words:
        ctx.set(line.i, word)
        seen.append(ctx.get(line.o))
        await ctx.tick()
    assert seen == ([0] * delay + words)[: len(words)]


def test_delay_line_wrong():
    with pytest.raises(ValueError, match="delay must be at least 0, not -1"):
        DelayLine(8, -1)


def random_operands(rng, shape):
    significand = rng.integers(1 << 11, 1 << 12, shape) & (-1 << rng.integers(0, 12, shape))
    exponent = rng.integers(-9, 9, shape)
    sign = rng.integers(0, 2, shape)
    kind = rng.choice(4, shape, p=(0.8, 0.1, 0.09, 0.01))  # number, absent, zero, infinity
    significand = np.choose(kind, [significand, 0, 0, 1 << 11])
    biased = np.choose(kind, [exponent + OPERAND_BIAS, 0, 0, OPERAND_BIAS])
    flags = np.choose(kind, [0, 3, 0, 1])
    bits = significand | biased << SIGNIFICAND_BITS | np.where(kind == 1, 0, sign) << 22 | flags << 23
    magnitude = np.where(kind == 3, np.inf, np.ldexp(significand.astype(np.float64), exponent - SIGNIFICAND_BITS + 1))
    return bits, np.where(sign == 1, -magnitude, magnitude).astype(np.float32), kind != 1


@pytest.mark.parametrize(("rows", "columns", "mac_latency"), [(2, 2, 1), *slow((3, 5, 3), (4, 8, 2)), (2, 10, 5)])
@simulated(
    lambda rows, columns, mac_latency: SystolicArray(Config(rows=rows, columns=columns, mac_latency=mac_latency))
)
async def test_array_multiplies_with_the_weights_of_the_last_swap(ctx, array, rows, columns, mac_latency, rng):
    """A column uses the weights loaded before the latest swap, including a swap of that column."""
    cycles, tiles = 250, tile_count(columns)
    x_bits, x, x_present = random_operands(rng, (cycles, rows))
    w_bits, w, w_present = random_operands(rng, (cycles, rows, LOAD_COLUMNS))
    swap, load = (rng.random(cycles) < share for share in (0.3, 0.6))
    distance = rng.integers(0, tiles, cycles)
    # The first cycles load every tile and swap, so that nothing depends on the initial registers.
    load[:tiles], distance[:tiles], swap[: tiles + 1] = True, range(tiles), [False] * tiles + [True]
    shadow, active = (np.zeros((rows, tiles * LOAD_COLUMNS), np.float32) for _ in range(2))
    shadow_present, active_present = (np.zeros(shadow.shape, bool) for _ in range(2))
    expected = np.zeros((cycles, columns), np.uint32)
    for cycle in range(cycles):
        if swap[cycle]:
            active[:], active_present[:] = shadow, shadow_present
        if load[cycle]:
            tile = slice(distance[cycle] * LOAD_COLUMNS, (distance[cycle] + 1) * LOAD_COLUMNS)
            shadow[:, tile], shadow_present[:, tile] = w[cycle], w_present[cycle]
        sums = np.full(columns, -0.0, np.float32)
        for row in range(rows):
            present = x_present[cycle, row] & active_present[row, :columns]
            sums = np.where(present, fma_fp32(x[cycle, row], active[row, :columns], sums), sums)
        expected[cycle] = sums.view(np.uint32)
    layout = RowEvents(tiles)
    seen = np.zeros((cycles, columns), np.uint32)

    def event(cycle, row):
        moving, *weights = (Operand().from_bits(int(bits)) for bits in (x_bits[cycle, row], *w_bits[cycle, row]))
        fields = {"swap": int(swap[cycle]), "load": int(load[cycle]), "distance": int(distance[cycle])}
        return layout.const({"moving": moving, "weights": weights, **fields}).as_bits()

    latency = rows * mac_latency
    for cycle in range(cycles + latency + tiles):
        for row in range(rows):
            entered = cycle - row_skew(array.config, row)
            ctx.set(Value.cast(array.events[row]), event(entered, row) if 0 <= entered < cycles else 0)
        for column in range(columns):
            entered = cycle - latency - column // LOAD_COLUMNS
            if 0 <= entered < cycles:
                seen[entered, column] = ctx.get(Value.cast(array.sums).word_select(column, 32))
        await ctx.tick()
    settled = slice(tiles, None)
    after_swap = int((swap[:-1] & load[1:]).sum())
    with_swap = int((swap & load)[settled].sum())
    assert after_swap > 20 and with_swap > 20
    assert np.isfinite(expected[settled].view(np.float32)).mean() > 0.5
    np.testing.assert_array_equal(seen[settled], expected[settled])
