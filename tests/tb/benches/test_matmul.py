# amaranth: UnusedElaboratable=no

"""Whole matrix products on the engine: every element is golden's, and no cycle is lost that need not be."""

import numpy as np
import pytest

from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PRESETS, PSUM_BANKS, Config
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving
from neuroncore_rtl.tb.benches import matmul as bench
from neuroncore_rtl.tb.benches.matmul import BENCH, ideal_cycles, multiply, random_matrix
from neuroncore_rtl.tb.stimulus.tensor_tiling import tiled_products

SEED = 21
TINY, SMALL = PRESETS["tiny"], PRESETS["small"]
EVERY_FORMAT = pytest.mark.parametrize("fmt", MATMUL_FORMATS)

RAGGED = (13, 17, 18)
DEGENERATE = ((1, 1, 1), (1, 37, 1), (5, 1, 7), (1, 33, 40), (40, 33, 1))
"""M, K, N that divide nothing."""


def operands(fmt, shape, seed=SEED):
    """Return random matrices A [M, K] and B [K, N] with special values in them; prints the seed."""
    m, k, n = shape
    print(f"seed {seed}, {m} x {k} x {n} {fmt.name}")
    rng = np.random.default_rng(seed)
    return random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)


def check(fmt, shape, config, **options):
    """Multiply, compare with golden bit for bit, and return the elements compared and the counters."""
    a, b = operands(fmt, shape)
    result, counters = multiply(a, b, fmt, config, **options)
    expected = matrix_product(a, b, fmt, config.rows)
    assert result.shape == (shape[0], shape[2])
    differs = np.argwhere(result != expected)
    assert len(differs) == 0, f"{len(differs)} of {result.size} elements differ from golden, the first at {differs[0]}"
    return result.size, counters


@EVERY_FORMAT
def test_products_of_a_shape_that_divides_nothing_are_golden(fmt):
    compared, _ = check(fmt, RAGGED, TINY)
    print(f"{compared} elements compared")
    assert compared == 13 * 18


@pytest.mark.parametrize("shape", DEGENERATE, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("fmt", (BF16, FP32))
def test_products_with_a_dimension_of_one_are_golden(fmt, shape):
    """Either operand may be the stationary one; the bits do not show which was."""
    compared, _ = check(fmt, shape, TINY)
    assert compared == shape[0] * shape[2]


@pytest.mark.parametrize("fmt", (BF16, FP32, INT8))
def test_products_on_icarus_are_golden(fmt, sim):
    compared, _ = check(fmt, (5, 6, 7), TINY, sim=sim)
    assert compared == 35


@EVERY_FORMAT
def test_products_on_the_small_preset_are_golden_under_stalls(fmt):
    """The ragged tiles at the edges of 16 x 16, every stream pausing at random."""
    compared, counters = check(fmt, (37, 41, 43), SMALL, stall=60, seed=5)
    print(f"{compared} elements compared, {counters}")
    assert counters["wait_operand"] > 0


@pytest.mark.parametrize("fmt", (BF16, FP32))
def test_stalls_change_the_cycles_and_no_bit(fmt):
    a, b = operands(fmt, RAGGED)
    results, cycles = [], []
    for stall, seed in ((0, 1), (60, 1), (200, 1), (200, 2)):
        result, counters = multiply(a, b, fmt, TINY, stall=stall, seed=seed)
        results.append(result.tobytes())
        cycles.append(counters["cycles"])
    print(f"{cycles} cycles")
    assert len(set(results)) == 1
    assert cycles[0] < cycles[1] < cycles[2] and cycles[2] != cycles[3]


@pytest.mark.parametrize("fmt", (BF16, FP32, INT8))
def test_result_does_not_depend_on_the_array_where_k_fits_its_rows(fmt):
    """A larger K is cut into tiles, whose sums are rounded, so then it does (but for INT8, which is exact)."""
    a, b = operands(fmt, (9, 4, 11))
    tiny, small = (multiply(a, b, fmt, config)[0] for config in (TINY, SMALL))
    np.testing.assert_array_equal(tiny, small)


def test_int8_products_do_not_depend_on_the_array():
    a, b = operands(INT8, (9, 70, 11))
    tiny, small = (multiply(a, b, INT8, config)[0] for config in (TINY, SMALL))
    np.testing.assert_array_equal(tiny, small)
    exact = a.astype(np.uint8).view(np.int8).astype(np.int64) @ b.astype(np.uint8).view(np.int8)
    np.testing.assert_array_equal(tiny.view(np.int32), exact)


# Cycles

OVERHEAD = 16
"""What a product may lose beside one first load, rows * mac_latency and columns cycles of fill and drain."""


def steps_of(a, b, fmt, config):
    """Return the instructions of a product that is one program."""
    (program,) = tiled_products(a, b, fmt, config)
    return [step.instruction for step in program.steps], program.drains


@pytest.mark.parametrize(
    ("fmt", "shape"),
    [
        (BF16, (64, 64, 64)),
        (BF16, (16, 160, 200)),
        (BF16, (50, 33, 6)),
        (BF16, (6, 70, 6)),
        (FP32, (33, 40, 29)),
        (INT8, (160, 48, 90)),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else value.name,
)
def test_no_cycle_is_lost_but_the_first_load_one_fill_and_one_drain(fmt, shape):
    a, b = operands(fmt, shape)
    instructions, drains = steps_of(a, b, fmt, SMALL)
    loads = [i for i in instructions if isinstance(i, LoadStationary)]
    moves = [i for i in instructions if isinstance(i, MultiplyMoving)]
    # A load is hidden behind the multiplication before it if that lasts as long.
    assert min(move.n for move in moves) >= SMALL.columns // LOAD_COLUMNS + 2
    first_load = -(-loads[0].m // LOAD_COLUMNS)
    columns = sum(move.n for move in moves)
    _, counters = check(fmt, shape, SMALL)
    # The first instruction is seen in the cycle in which it enters, the last word in which it is written.
    expected = columns + first_load + TensorEngine.latency(SMALL) + 1
    constant = counters["cycles"] - columns - first_load - SMALL.rows * SMALL.mac_latency - SMALL.columns
    print(f"{len(drains)} tiles, {columns} columns, {counters['cycles']} cycles, constant {constant}")
    assert counters["columns"] == columns
    assert counters["wait_operand"] == counters["wait_psum"] == 0
    assert counters["cycles"] == expected
    assert constant <= OVERHEAD


def test_more_tiles_than_psum_banks_lose_no_cycle():
    """Banks are read while others fill, so that the ninth tile does not wait."""
    a, b = operands(BF16, (160, 32, 64))
    instructions, drains = steps_of(a, b, BF16, SMALL)
    assert len(drains) > PSUM_BANKS
    _, counters = check(BF16, (160, 32, 64), SMALL)
    columns = sum(getattr(instruction, "n", 0) for instruction in instructions)
    assert counters["cycles"] - columns - TensorEngine.latency(SMALL) <= OVERHEAD


def test_fp32_takes_four_times_the_cycles_of_bf16():
    shape = (64, 64, 512)
    bf16, fp32 = (check(fmt, shape, SMALL)[1]["cycles"] for fmt in (BF16, FP32))
    print(f"{bf16} and {fp32} cycles: {fp32 / bf16:.3f}")
    assert 3.92 <= fp32 / bf16 <= 4.08


def test_latency_follows_from_the_pipelines_depths():
    """At full size rows * mac_latency + columns and the bound of the constant, whatever the adder."""
    for config in (PRESETS["full"], Config(rows=128, columns=128, mac_latency=5, add_latency=4)):
        filled = config.rows * config.mac_latency + config.columns
        assert TensorEngine.latency(config) <= filled + OVERHEAD
        assert TensorEngine.latency(config) == (
            TensorEngine.INPUT_LATENCY
            + config.rows * config.mac_latency
            + config.columns // LOAD_COLUMNS
            - 2
            + config.add_latency
            + 2
        )


# The bench


def test_bench_reports_what_it_compared(capsys):
    report = BENCH.run(BENCH.settings(["M=5", "K=6", "N=7", "PRESET=tiny", "DTYPE=fp16", "SEED=3", "TARGET=engine"]))
    assert report.problems == []
    assert report.exit_status == 0
    assert (report.compared, report.mismatches) == (35, 0)
    assert report.ideal_cycles == ideal_cycles(5, 6, 7, FP16, TINY) == 14
    assert report.cycles > report.ideal_cycles


def test_bench_prints_elements_that_differ_and_fails(monkeypatch, capsys):
    def wrong(a, b, fmt, rows):
        words = matrix_product(a, b, fmt, rows)
        words[2, 3] ^= 1
        return words

    monkeypatch.setattr(bench.golden, "matrix_product", wrong)
    report = BENCH.run(BENCH.settings(["M=5", "K=6", "N=7", "PRESET=tiny", "TARGET=engine"]))
    assert report.exit_status == 1
    assert (report.compared, report.mismatches) == (35, 1)
    assert "C[2, 3]: RTL " in capsys.readouterr().out


@pytest.mark.parametrize(
    "assignments",
    (
        ["M=5", "K=6", "N=7", "DTYPE=fp16", "SEED=3"],
        ["M=13", "K=17", "N=18", "DTYPE=fp32", "STALL=60"],
        ["M=9", "K=30", "N=20", "DTYPE=int8", "LATENCY=150", "BANDWIDTH=3"],
        ["M=16", "K=64", "N=530", "DTYPE=bf16"],
    ),
    ids=" ".join,
)
def test_products_on_the_core_are_golden(assignments):
    report = BENCH.run(BENCH.settings([*assignments, "PRESET=tiny"]))
    assert report.problems == []
    m, n = (int(assignments[place].partition("=")[2]) for place in (0, 2))
    assert report.compared > 4 * m * n


def test_core_bench_sees_a_wrong_product(monkeypatch, capsys):
    def wrong(a, b, fmt, rows):
        words = matrix_product(a, b, fmt, rows)
        words[2, 3] ^= 1
        return words

    monkeypatch.setattr(bench.golden, "matrix_product", wrong)
    report = BENCH.run(BENCH.settings(["M=5", "K=6", "N=7", "PRESET=tiny", "TARGET=core"]))
    assert (report.exit_status, report.mismatches) == (1, 1)
    assert "C[2, 3]: RTL " in capsys.readouterr().out


@pytest.mark.slow
def test_full_size_product_is_golden():
    compared, counters = check(BF16, (128, 128, 512), PRESETS["full"])
    print(f"{compared} elements compared, {counters}")
    assert compared == 128 * 512
    assert counters["cycles"] == 512 + 128 // LOAD_COLUMNS + TensorEngine.latency(PRESETS["full"]) + 1
