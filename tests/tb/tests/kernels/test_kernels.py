"""Kernels on both engines and layers on the core: bytes equal golden's, results are near float64."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.library.stochastic import accumulate
from neuroncore_rtl.run import elementwise
from neuroncore_rtl.run.elementwise import expected_memories
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import FP16
from neuroncore_rtl.tb.tests.kernels import workbench
from tests.hdl.tensor.engines import faulty
from tests.tb.reports import passed, report_of

NORMS = {"softmax": "bf16", "layernorm": "fp16", "rmsnorm": "bf16"}  # with a narrow format

PLACE = {"fp32": 2**-24, "bf16": 2**-8, "fp16": 2**-11}  # half an ulp at 1


def largest_error(report) -> float:
    found = [value for key, value in report.rows.items() if key.startswith("error_of_")]
    return max(error["max_over_largest_result"] for error in found)


SHAPES = ("M=1 N=1", "M=5 N=7", "M=9 N=513")  # one element; no multiples; more columns than one BN_STATS accepts

BOUNDS = {
    # About twelve roundings, and sums of 513 elements in order.
    **{f"{name} {shape} DTYPE=fp32 SEED=3": 64 * PLACE["fp32"] for name in NORMS for shape in SHAPES},
    # Narrow results are rounded once.
    **{f"{name} M=6 N=33 DTYPE={fmt} SEED=4 STALL=40": 1.01 * PLACE[fmt] for name, fmt in NORMS.items()},
    "gelu M=6 N=33 DTYPE=fp32 FUNC=gelu SEED=5 STALL=90": 4 * PLACE["fp32"],
    "gelu M=6 N=33 DTYPE=fp32 FUNC=gelu_tanh SEED=5 STALL=90": 4 * PLACE["fp32"],
    **{f"topk M=5 N=40 K={k} DTYPE=fp32 SEED=7 STALL=30": 0.0 for k in (1, 8, 24)},  # a stable sort
    "adamw M=5 N=9 DTYPE=fp32 ROUND=rne SEED=6": 16 * PLACE["fp32"],
    # Up to one ulp per update; rounding to nearest has at most half.
    "adamw M=5 N=9 ROUND=sr SEED=6 STALL=60": 3 * 2 * PLACE["bf16"],
    "softmax_backward M=5 N=7 DTYPE=fp32 SEED=3": 8 * PLACE["fp32"],
    "softmax_backward M=6 N=33 DTYPE=bf16 SEED=4 STALL=40": 1.01 * PLACE["bf16"],
    "crossentropy M=9 N=513 DTYPE=fp32 SEED=3": 64 * PLACE["fp32"],
    "crossentropy M=6 N=33 DTYPE=bf16 SEED=4 STALL=40": 1.01 * PLACE["bf16"],
    "softmax M=9 N=33 TARGET=core SEED=12 STALL=60": 6 * PLACE["bf16"],
    "crossentropy M=9 N=33 TARGET=core SEED=12 STALL=60": 1.01 * PLACE["bf16"],
    "adamw M=9 N=33 TARGET=core SEED=12 STALL=60": 6 * PLACE["bf16"],
    # The result is rounded once.
    "linear PRESET=tiny M=9 K=13 N=21 SEED=2 STALL=40": 1.01 * PLACE["bf16"],
    "linear PRESET=tiny M=9 K=13 N=6 LAYOUT=rows SEED=3": 1.01 * PLACE["bf16"],
    "swiglu PRESET=tiny M=5 K=9 N=10 SEED=4": 3 * PLACE["bf16"],  # the hidden layer is rounded as well
    "rope PRESET=tiny SEQ=6 HEADS=3 DIM=6 SEED=5 STALL=40": 1.01 * PLACE["bf16"],
    "decoder PRESET=tiny SEQ=3 DIM=12 HEADS=3 HIDDEN=20 SEED=6": 3 * PLACE["bf16"],
    "conv2d PRESET=tiny IMAGES=1 CHANNELS=5 HEIGHT=6 WIDTH=7 N=6 SEED=4 STALL=40": 1.01 * PLACE["bf16"],
    "conv2d PRESET=tiny IMAGES=1 CHANNELS=3 HEIGHT=6 WIDTH=7 N=2 STRIDE=2 SEED=5": 1.01 * PLACE["bf16"],
    "linear_backward PRESET=tiny M=9 K=7 N=10 ADD=1 SEED=2 STALL=40": 1.01 * PLACE["bf16"],
    "layernorm_backward PRESET=tiny M=6 N=9 SEED=3": 2 * PLACE["bf16"],
    "attention_backward PRESET=tiny SEQ=6 KEYS=9 DIM=5 HEADS=2 CAUSAL=1 SEED=3 STALL=40": 3 * PLACE["bf16"],
    "encoder_backward PRESET=tiny SEQ=4 DIM=6 HEADS=2 HIDDEN=5 SEED=3": 8 * PLACE["bf16"],
    "embedding PRESET=tiny VOCAB=9 SEQ=7 DIM=5 SEED=4 STALL=40": 1.01 * PLACE["bf16"],
    # Weights and results are rounded.
    "attention PRESET=tiny SEQ=6 DIM=6 HEADS=2 SEED=4": 2.01 * PLACE["bf16"],
    "attention PRESET=tiny SEQ=5 KEYS=9 DIM=3 CAUSAL=1 SEED=5 STALL=40": 2.01 * PLACE["bf16"],
    # All matrices between x and y are rounded as well.
    "encoder PRESET=tiny SEQ=6 DIM=8 HEADS=2 HIDDEN=10 SEED=6 STALL=40": 3 * PLACE["bf16"],
}
"""By TEST and variables: bound on the error, relative to the largest result."""


@pytest.mark.parametrize("words", BOUNDS)
def test_kernels_and_layers_are_golden_and_near_float64(words):
    report = passed(*words.split(maxsplit=1))
    assert largest_error(report) <= BOUNDS[words]
    assert "TARGET=core" not in words or report.rows["dma_bytes"]["read_bytes"] > 0


def test_a_program_that_is_too_long_is_refused(monkeypatch, tmp_path):
    (tmp_path / "own.txt").write_text("0.5 " * 40)
    monkeypatch.setattr(workbench, "PROGRAM_DEPTH", 64)
    with pytest.raises(UsageError, match=r"sr must have at most 64 instructions of the vector engine, not \d\d"):
        report_of("sr", f"M=1 STEPS=0 ADDENDS={tmp_path / 'own.txt'}")


@pytest.mark.slow
def test_softmax_on_icarus(sim):
    passed("softmax", f"M=5 N=6 SEED=8 SIM={sim} STALL=50")


def broken_softmax(monkeypatch, **shell):
    def device(config, engines):
        return faulty(ElementwiseDevice(config=config), "scalar_engine", **shell)

    monkeypatch.setattr(elementwise, "ElementwiseDevice", device)
    return report_of("softmax", "ROWS=2 COLUMNS=2 M=2 N=3 SIM=icarus")


def test_a_wrong_bit_fails_the_bench(monkeypatch):
    data = "wire [63:0] data; assign write__data = data ^ 64'd1;"
    report = broken_softmax(monkeypatch, ports={"write__data": "data"}, body=data)
    assert 0 < report.mismatches < report.compared and report.exit_status == 1


def test_a_silent_engine_fails_the_bench(monkeypatch):
    with pytest.raises(SimulationFailed, match=r"engine retired \d instructions, not \d"):
        broken_softmax(monkeypatch, ports={"instructions__valid": "1'b0"})


def test_stochastic_sums_do_not_depend_on_the_number_of_lanes():
    columns, found = 3, []
    for preset in ("tiny", "small", "full"):
        bench = workbench.EngineWorkbench(PRESETS[preset])
        history, _ = bench.place("sums", np.full((7, 41 * columns), 1024.0), FP16)
        accumulate(bench.program, history, [0.5] * 40, seed=10)
        sbuf, _ = expected_memories([e.instruction for e in bench.program.entries], *bench.memories(), bench.config)
        found.append(history.read(sbuf)[:, -columns:])
    assert len(set(found[0].ravel())) > 3
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()
