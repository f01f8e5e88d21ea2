# amaranth: UnusedElaboratable=no

"""Kernels on both engines: any shape, stalls, both simulators; every byte golden, results near float64."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.library.stochastic import accumulate
from neuroncore_rtl.kernels.program.rows import place_rows
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import FP16, FP32
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.tb.benches import workbench
from neuroncore_rtl.tb.benches.core_bench import hbm_of
from neuroncore_rtl.tb.benches.execution import execute
from neuroncore_rtl.tb.benches.images import ImageTask
from neuroncore_rtl.tb.benches.workbench import EngineWorkbench
from neuroncore_rtl.tb.check.execution import expected_memories
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.harness.elementwise import ElementwiseDevice
from neuroncore_rtl.tb.sim.settings import UsageError
from neuroncore_rtl.tb.sim.simulation import SimulationFailed
from tests.hdl.tensor.engines import faulty
from tests.kernels.library.attention import attention

SHAPES = ((1, 1), (5, 7), (9, 513))
"""Rows and columns: one element, nothing that divides, and more columns than one BN_STATS takes."""

NORMS = ("softmax", "layernorm", "rmsnorm")

LAST_PLACE = {"fp32": 2**-24, "bf16": 2**-8, "fp16": 2**-11}
"""Half of the distance between 1 and the next number."""


def run(name: str, **settings):
    """Run a TEST and return its report, which must have passed."""
    bench = bench_named(name)
    report = bench.run(bench.settings([f"{key}={value}" for key, value in settings.items()]))
    assert report.problems == []
    assert report.compared > 0
    return report


def error(report, name: str = "y") -> float:
    """Return the largest error of a result, relative to the largest result."""
    return float(report.extra[f"error_of_{name}"]["max over largest result"])


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("name", NORMS)
def test_rows_of_any_shape_are_golden_and_near_float64(name, shape):
    report = run(name, M=shape[0], N=shape[1], DTYPE="fp32", SEED=3)
    # A dozen roundings, and sums of 513 elements one after the other.
    assert error(report) < 64 * LAST_PLACE["fp32"]


@pytest.mark.parametrize("dtype", ("bf16", "fp16"))
@pytest.mark.parametrize("name", NORMS)
def test_narrow_results_are_rounded_once(name, dtype):
    report = run(name, M=6, N=33, DTYPE=dtype, SEED=4, STALL=40)
    assert error(report) < 1.01 * LAST_PLACE[dtype]


@pytest.mark.parametrize("form", ("gelu", "gelu_tanh"))
def test_gelu_and_its_gradient(form):
    report = run("gelu", M=6, N=33, DTYPE="fp32", FUNC=form, SEED=5, STALL=90)
    assert max(error(report), error(report, "dx")) < 4 * LAST_PLACE["fp32"]


def test_adamw_follows_float64_in_fp32():
    report = run("adamw", M=5, N=9, DTYPE="fp32", ROUND="rne", SEED=6)
    assert error(report, "parameters") < 16 * LAST_PLACE["fp32"]


def test_adamw_rounds_bf16_parameters_stochastically():
    report = run("adamw", M=5, N=9, ROUND="sr", SEED=6, STALL=60)
    # Up to one place an update, where rounding to nearest stays within half.
    assert error(report, "parameters") < 3 * 2 * LAST_PLACE["bf16"]


@pytest.mark.parametrize("k", (1, 8, 24))
def test_topk_is_a_stable_sort(k):
    report = run("topk", M=5, N=40, K=k, DTYPE="fp32", SEED=7, STALL=30)
    assert error(report, "values") == error(report, "indices") == 0


def test_topk_refuses_rows_that_are_too_short():
    with pytest.raises(UsageError, match="k must be a multiple of 8 up to the 9 columns, not 16"):
        run("topk", M=2, N=9, K=16)


def test_a_matrix_that_does_not_fit_is_refused_by_name():
    with pytest.raises(UsageError, match=r"y\[0:4\]: SBUF must end at 196604 bytes, not \d+"):
        run("softmax", M=4, N=60000)


def test_a_program_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(workbench, "PROGRAM_DEPTH", 4096)
    with pytest.raises(UsageError, match=r"sr must have at most 4,096 instructions of the vector engine, not \d,\d"):
        run("sr", M=1, STEPS=1)


@pytest.mark.parametrize("name", ("softmax", "adamw"))
def test_kernels_on_the_core_are_golden_and_near_float64(name):
    report = run(name, M=9, N=33, TARGET="core", SEED=12, STALL=60)
    assert report.extra["dma_bytes"]["read_bytes"] > 0
    errors = [value for key, value in report.extra.items() if key.startswith("error_of")]
    assert all(float(error["max over largest result"]) < 6 * LAST_PLACE["bf16"] for error in errors)


def test_attention_is_one_program_of_the_core():
    """Two products with a softmax between them: nothing leaves the machine before the result is in HBM."""
    image, out, expected = attention(np.random.default_rng(13), PRESETS["tiny"], queries=9, keys=13, width=6)
    settings = bench_named("softmax").settings(["STALL=40"])
    done = execute(
        ImageTask(machine=PRESETS["tiny"], images=[image], behaviour=hbm_of(settings)), settings, "attention"
    )
    (hbm,) = done.outcome.memories["hbm"]
    assert (done.mismatches, done.failures) == (0, ())
    np.testing.assert_allclose(decode(out.elements(hbm), FP32), expected, atol=LAST_PLACE["bf16"] * 2)


def test_softmax_on_icarus(sim):
    run("softmax", M=5, N=6, SEED=8, SIM=sim, STALL=50)


def broken_softmax(monkeypatch, **shell):
    """Run TEST=softmax on the smallest machine, its scalar engine in a shell that breaks it, and return its report."""
    monkeypatch.setattr(
        workbench,
        "ElementwiseDevice",
        lambda config: faulty(ElementwiseDevice(config=config), "scalar_engine", **shell),
    )
    bench = bench_named("softmax")
    return bench.run(bench.settings(["ROWS=2", "COLUMNS=2", "M=2", "N=3", "SIM=icarus"]))


def test_a_wrong_bit_fails_the_bench(monkeypatch):
    data = "wire [63:0] data; assign write__data = data ^ 64'd1;"
    report = broken_softmax(monkeypatch, ports={"write__data": "data"}, body=data)
    assert report.mismatches > 0
    assert report.exit_status == 1


def test_a_silent_engine_fails_the_bench(monkeypatch):
    with pytest.raises(SimulationFailed, match=r"engine retired \d instructions, not \d"):
        broken_softmax(monkeypatch, ports={"instructions__valid": "1'b0"})


def test_long_sums_and_descent_with_stochastic_rounding():
    report = run("sr", M=5, STEPS=150, SEED=9)
    sums = report.extra["1024 + 2048 * 0.5"]
    assert sums["to nearest even"] == "1024"
    # Each of the 2,048 additions goes up with a probability of 1/2, or 1/4 and 3/4 above 2048.
    deviation = np.sqrt(2048) / 2 / np.sqrt(5)
    assert abs(float(sums["stochastic, mean"]) - 2048) < 4 * deviation
    ends = {name: float(loss) for name, loss in report.extra["squared error at the end"].items()}
    assert ends["sr"] < ends["rne"]
    assert report.extra["equal to one untiled tensor"] == "yes"


@pytest.mark.parametrize("preset", ("tiny", "small"))
def test_stochastic_sums_do_not_depend_on_the_number_of_lanes(preset):
    """The programs of different machines, 2 tiles and 1, in golden; the hardware is golden's equal on each."""
    seed, rows, columns, steps = 10, 7, 3, 40
    bench = EngineWorkbench(PRESETS[preset])
    history, _ = bench.place("sums", np.full((rows, (steps + 1) * columns), 1024.0), FP16)
    accumulate(bench.program, history, columns, 0.5, seed)
    sbuf, _ = expected_memories([e.instruction for e in bench.program.entries], *bench.memories(), bench.config)
    sums = decode(history.read(sbuf), FP16)[:, -columns:]
    whole = EngineWorkbench(PRESETS["full"])
    reference = place_rows(whole.program.space, "sums", FP16, rows, (steps + 1) * columns)
    whole.contents.append((reference, np.full((rows, (steps + 1) * columns), 0x6400, np.uint16)))
    accumulate(whole.program, reference, columns, 0.5, seed)
    sbuf, _ = expected_memories([e.instruction for e in whole.program.entries], *whole.memories(), whole.config)
    assert len(set(sums.ravel())) > 3
    assert (sums == decode(reference.read(sbuf), FP16)[:, -columns:]).all()
    assert bench.program.space.peak(Storage.PSUM) == 0


@pytest.mark.parametrize("name", (*NORMS, "gelu", "adamw", "topk"))
def test_a_format_that_is_no_float_is_refused(name):
    with pytest.raises(UsageError, match="DTYPE must be one of fp32, tf32, bf16, fp16, not 'int8'"):
        run(name, DTYPE="int8")
