"""Faults of the tensor engine, which random programs must show as wrong words, or the harness must report."""

import numpy as np
import pytest

from neuroncore_rtl.run.harness.engines.tensor import TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import TENSOR_BITS
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program
from tests.hdl.tensor.engines import faulty

CONFIG = Config(rows=2, columns=8)
"""A small machine on which operands and results may start at two places of the columns."""
SEED = 8

RESULTS = {
    "none": (r"tile_\w+", {"swap": "swap"}, ""),
    "weights go to the other columns": (r"datapath_\w+", {"distance": "~distance"}, ""),
    "weights never swapped after the first time": (
        r"tile_\w+",
        {"swap": "swap & ~swapped"},
        "    reg swapped = 0; always @(posedge clk) if (swap) swapped <= 1;",
    ),
}
"""Faulty module, the changed ports and the Verilog of its shell."""

REPORTED = {
    "weights swapped a cycle late": (
        (r"tile_\w+", {"swap": "late"}, "    reg late = 0; always @(posedge clk) late <= swap;"),
        "unknown bits",
    ),
    "retires nothing": (("tensor_engine", {"retired": ""}, "    assign retired = 0;"), "the engine did not finish"),
    "mistakes every opcode": (
        ("tensor_engine", {"instructions__payload": f"{{instructions__payload[{TENSOR_BITS - 1}:2], 2'b11}}"}, ""),
        "the engine refused instruction 0: OPCODE",
    ),
}
"""Faults with missing or undefined results, and the reports."""


def run_faulty(module, ports, body):
    program, expected = random_tensor_program(np.random.default_rng(SEED), CONFIG, 20, longest=9)
    print(f"seed {SEED}, {expected.size} words")
    device = faulty(TensorDevice(config=CONFIG), module, ports=ports, body=body)
    return run_device(device, TensorWork(program=program), sim="icarus").memories["psum"], expected


@pytest.mark.parametrize("fault", RESULTS)
def test_wrong_results_are_detected(fault):
    words, expected = run_faulty(*RESULTS[fault])
    assert words.shape == expected.shape and expected.size > 0
    wrong = (words != expected).mean()
    assert wrong == 0 if fault == "none" else 0 < wrong < 1


@pytest.mark.parametrize("fault", REPORTED)
def test_missing_or_undefined_results_are_reported_and_nothing_hangs(fault):
    shell, message = REPORTED[fault]
    with pytest.raises(SimulationFailed, match=message):
        run_faulty(*shell)
