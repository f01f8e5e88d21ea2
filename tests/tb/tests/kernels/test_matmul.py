"""Matrix products on the engine: elements equal golden's, and cycles are minimal."""

import re
from importlib import import_module

import numpy as np
import pytest

from neuroncore_rtl.golden.tensor import array_operand, matrix_product
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.run.targets import Rtl
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving
from neuroncore_rtl.tb.stimulus.tensor_tiling import tiled_products
from neuroncore_rtl.tb.tests.kernels import matmul, products
from tests.tb.reports import passed, report_of

SEED = 21
TINY, SMALL = PRESETS["tiny"], PRESETS["small"]

RAGGED = (13, 17, 18)
DEGENERATE = ((1, 1, 1), (1, 37, 1), (5, 1, 7), (1, 33, 40), (40, 33, 1))  # M, K, N that are no multiples


def words(value):
    return "x".join(map(str, value)) if isinstance(value, tuple | dict) else None


def operands(fmt, shape, seed=SEED):
    m, k, n = shape
    print(f"seed {seed}, {m} x {k} x {n} {fmt.name}")
    rng = np.random.default_rng(seed)
    return products.random_matrix(rng, fmt, m, k), products.random_matrix(rng, fmt, k, n)


def check(fmt, shape, config, **options):
    a, b = operands(fmt, shape)
    on = Rtl(sim=options.pop("sim", "verilator"))
    result, counters = products.multiply_on_core(a, b, fmt, config, on, **options)
    expected = matrix_product(a, b, fmt, config.rows)
    assert result.shape == (shape[0], shape[2])
    differs = np.argwhere(result != expected)
    assert len(differs) == 0, f"{len(differs)} of {result.size} elements differ from golden, the first at {differs[0]}"
    print(f"{result.size} elements compared, {counters}")
    return counters


@pytest.mark.parametrize(
    ("fmt", "shape", "config", "options"),
    [
        *((fmt, RAGGED, TINY, {}) for fmt in MATMUL_FORMATS),
        # Either operand may be the stationary one, with the same bits.
        *((fmt, shape, TINY, {}) for fmt in (BF16, FP32) for shape in DEGENERATE),
        *((fmt, (5, 6, 7), TINY, {"sim": "icarus"}) for fmt in (BF16, FP32, INT8)),
        # Ragged tiles at the edges of 16 x 16; every stream pauses at random.
        *((fmt, (37, 41, 43), SMALL, {"stall": 60, "seed": 5}) for fmt in MATMUL_FORMATS),
    ],
    ids=words,
)
def test_products_are_golden(fmt, shape, config, options):
    counters = check(fmt, shape, config, **options)
    assert "stall" not in options or counters["wait_operand"] > 0


def test_stalls_change_the_cycles_and_no_bit():
    a, b = operands(BF16, RAGGED)
    stalls = ((0, 1), (60, 1), (200, 1), (200, 2))
    runs = [products.multiply_on_core(a, b, BF16, TINY, stall=stall, seed=n) for stall, n in stalls]
    cycles = [counters["cycles"] for _, counters in runs]
    assert len({result.tobytes() for result, _ in runs}) == 1
    assert cycles[0] < cycles[1] < cycles[2] and cycles[2] != cycles[3]


OVERHEAD = 16  # permitted cycles besides the first load, and the fill (rows * mac_latency) and drain (columns)


@pytest.mark.parametrize(
    ("fmt", "shape"),
    [
        (BF16, (64, 64, 64)),
        (BF16, (16, 160, 200)),
        (BF16, (50, 33, 6)),
        (BF16, (6, 70, 6)),
        (FP32, (33, 40, 29)),
        (INT8, (160, 48, 90)),
        # More tiles than PSUM banks: tiles are read while others are filled.
        (BF16, (160, 32, 64)),
    ],
    ids=words,
)
def test_no_cycle_is_lost_but_the_first_load_one_fill_and_one_drain(fmt, shape):
    (program,) = tiled_products(*operands(fmt, shape), fmt, SMALL)
    instructions = [step.instruction for step in program.steps]
    first_load = -(-next(i for i in instructions if isinstance(i, LoadStationary)).m // LOAD_COLUMNS)
    moved = [i.n for i in instructions if isinstance(i, MultiplyMoving)]
    # A load is hidden by the preceding multiplication if that lasts as long.
    assert min(moved) >= SMALL.columns // LOAD_COLUMNS + 2
    counters = check(fmt, shape, SMALL)
    constant = counters["cycles"] - sum(moved) - first_load - SMALL.rows * SMALL.mac_latency - SMALL.columns
    print(f"{len(program.drains)} tiles, {sum(moved)} columns, {counters['cycles']} cycles, constant {constant}")
    assert counters["columns"] == sum(moved)
    assert counters["wait_operand"] == counters["wait_psum"] == 0
    # The first instruction counts from its entry, the last word until its write.
    assert counters["cycles"] == sum(moved) + first_load + TensorEngine.latency(SMALL) + 1
    assert constant <= OVERHEAD


def test_fp32_takes_four_times_the_cycles_of_bf16():
    bf16, fp32 = (check(fmt, (64, 64, 512), SMALL)["cycles"] for fmt in (BF16, FP32))
    assert 3.92 <= fp32 / bf16 <= 4.08


def test_latency_follows_from_the_pipelines_depths():
    """At full size the latency is rows * mac_latency + columns and at most OVERHEAD, for any `add_latency`."""
    for config in (PRESETS["full"], Config(rows=128, columns=128, mac_latency=5, add_latency=4)):
        fill = config.rows * config.mac_latency
        steps = TensorEngine.input_latency(config) + config.columns // LOAD_COLUMNS - 2 + config.add_latency + 2
        assert TensorEngine.latency(config) == fill + steps <= fill + config.columns + OVERHEAD


def test_bench_reports_what_it_compared(capsys):
    report = passed("matmul", "M=5 K=6 N=7 PRESET=tiny DTYPE=fp16 SEED=3 TARGET=engine")
    assert report.compared == 35
    assert report.ideal_cycles == products.ideal_cycles(5, 6, 7, FP16, TINY) == 14
    assert report.cycles > report.ideal_cycles


@pytest.mark.parametrize("target", ("engine", "core"))
def test_bench_prints_elements_that_differ_and_fails(target, monkeypatch, capsys):
    def wrong(a, b, fmt, rows):
        words = matrix_product(a, b, fmt, rows)
        words[2, 3] ^= 1
        return words

    monkeypatch.setattr(matmul.golden, "matrix_product", wrong)
    report = report_of("matmul", f"M=5 K=6 N=7 PRESET=tiny TARGET={target}")
    assert (report.exit_status, report.mismatches) == (1, 1)
    assert target == "core" or report.compared == 35
    printed = capsys.readouterr().out
    assert "C[rows 0:4, columns 0:4] is the first tile that differs, in 1 of 16 elements:" in printed
    found, expected = re.search(r"  C\[2, 3\]: RTL (\S+) \(\w{8}\), golden (\S+) \(\w{8}\)", printed).groups()
    assert found != expected and float(found) == pytest.approx(float(expected))
    target = "" if target == "core" else " TARGET=engine"
    assert f"make sim TEST=matmul M=5 K=6 N=7{target} PRESET=tiny WAVES=1, then make waves TEST=matmul" in printed


@pytest.mark.parametrize(
    "words",
    (
        "M=5 K=6 N=7 DTYPE=fp16 SEED=3",
        "M=13 K=17 N=18 DTYPE=fp32 STALL=60",
        "M=9 K=30 N=20 DTYPE=int8 LATENCY=150 BANDWIDTH=3",
        "M=16 K=64 N=530 DTYPE=bf16",
    ),
)
def test_products_on_the_core_are_golden(words):
    m, n = (int(re.search(rf"{name}=(\d+)", words)[1]) for name in "MN")
    assert passed("matmul", f"{words} PRESET=tiny").compared > 4 * m * n


@pytest.mark.slow
def test_full_size_product_is_golden():
    counters = check(BF16, (128, 128, 512), PRESETS["full"])
    assert counters["cycles"] == 512 + 128 // LOAD_COLUMNS + TensorEngine.latency(PRESETS["full"]) + 1


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("PRESET=tiny", 18_000),  # 64 x 64 x 64: 16,384 in the array, 380 in boot
        pytest.param("", 1_800, marks=pytest.mark.slow),
        pytest.param("M=1 K=512 N=512", 18_400, marks=pytest.mark.slow),  # HBM bound: 16,480
        pytest.param("M=256 K=256 N=256", 66_500, marks=pytest.mark.slow),
        pytest.param("PRESET=full M=512 K=512 N=512", 10_000, marks=pytest.mark.slow),
        pytest.param("PRESET=full M=512 K=512 N=512 BANDWIDTH=256", 10_000, marks=pytest.mark.slow),
        pytest.param("PRESET=full M=1024 K=1024 N=1024", 67_200, marks=pytest.mark.slow),
    ],
)
def test_products_on_the_core_are_close_to_the_roofline(words, most):
    assert passed("matmul", words).cycles <= most


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_matrices_show_a_lower_half_that_meets_an_infinity(seed, monkeypatch):
    """A zero low half of FP32 is skipped, so an infinity times it does not give NaN."""
    rng = np.random.default_rng(seed)
    a, b = (products.random_matrix(rng, FP32, 64, 64) for _ in range(2))
    expected = matrix_product(a, b, FP32, 16)
    product = import_module("neuroncore_rtl.golden.tensor.product")
    monkeypatch.setattr(product, "array_operand", lambda *given, **options: (array_operand(*given, **options)[0], None))
    assert not np.array_equal(matrix_product(a, b, FP32, 16), expected)
