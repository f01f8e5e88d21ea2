import numpy as np
import pytest

from neuroncore_rtl.run.harness.engines.tensor import TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa import TENSOR_BITS
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program
from tests.hdl.simulation import slow_if
from tests.hdl.tensor.engines import faulty

CONFIG = PRESETS["tiny"]
QUARTERED = Config(rows=8, columns=8)
"""A machine on which operands and results may start at any quadrant of the array."""
SEED = 8

RESULTS = {
    "accumulates never": (r"\w*partition_latency\d+", {"accumulate": "1'b0"}),
    "last place of a sum wrong once in 8": (
        r"tile_\w+\.mac0",
        {"out": "sum"},
        "    wire [31:0] sum; assign out = {sum[31:1], sum[0] ^ (sum[22:20] == 3'd5)};",
    ),
    "rows beyond k take part": (r"edge_\d+_bits12", {"moving_present": "4'hf", "stationary_present": "4'hf"}),
    "columns beyond m are written": (r"psum_\d+_\w+", {"updates": "4'hf"}),
    "weights never swapped after the first time": (
        r"tile_\w+",
        {"swap": "swap & ~swapped"},
        "    reg swapped = 0; always @(posedge clk) if (swap) swapped <= 1;",
    ),
}
"""Faults with wrong results: faulty module, and the changed ports and the Verilog of its shell."""

MISPLACED = {
    "rows before the first stationary one take part": (
        r"edge_\d+_bits12",
        {"stationary_present": "stationary_present | (stationary_present - 8'd1)"},
    ),
    "rows before the first moving one take part": (
        r"edge_\d+_bits12",
        {"moving_present": "moving_present | (moving_present - 8'd1)"},
    ),
    "columns before the first are written": (r"psum_\d+_\w+", {"updates": "updates | (updates - 8'd1)"}),
    "weights go to the other columns": (r"datapath_\w+", {"distance": "~distance"}),
}
"""Faults of the position of operands and results in the array."""

TYPICAL = ("weights never swapped after the first time", "weights go to the other columns")
"""Faults tested outside the slow set."""

REPORTED = {
    "weights swapped a cycle late": (
        (r"tile_\w+", {"swap": "late"}, "    reg late = 0; always @(posedge clk) late <= swap;"),
        "unknown bits",
    ),
    "retires nothing": (("tensor_engine", {"retired": ""}, "    assign retired = 0;"), "the engine did not finish"),
    "takes no instruction": (
        ("tensor_engine", {"instructions__ready": ""}, "    assign instructions__ready = 0;"),
        "the engine did not finish",
    ),
    "mistakes every opcode": (
        ("tensor_engine", {"instructions__payload": f"{{instructions__payload[{TENSOR_BITS - 1}:2], 2'b11}}"}),
        "the engine refused instruction 0: OPCODE",
    ),
}
"""Faults with missing or undefined results, and the reports."""


def run_faulty(module, ports, body="", config=CONFIG):
    program, expected = random_tensor_program(np.random.default_rng(SEED), config, 30, longest=9)
    print(f"seed {SEED}, {expected.size} words")
    device = faulty(TensorDevice(config=config), module, ports=ports, body=body)
    return run_device(device, TensorWork(program=program), sim="icarus").memories["psum"], expected


@pytest.mark.parametrize("fault", slow_if(lambda fault: fault not in TYPICAL, (*RESULTS, *MISPLACED)))
def test_wrong_results_are_detected(fault):
    words, expected = run_faulty(*(RESULTS | MISPLACED)[fault], config=QUARTERED if fault in MISPLACED else CONFIG)
    differ = int((words != expected).sum())
    assert words.shape == expected.shape
    assert 0 < differ < expected.size


def test_a_wrapped_engine_without_a_fault_passes():
    words, expected = run_faulty(r"tile_\w+", {"swap": "swap"})
    assert expected.size > 0
    np.testing.assert_array_equal(words, expected)


@pytest.mark.parametrize("fault", REPORTED)
def test_missing_or_undefined_results_are_reported_and_nothing_hangs(fault):
    shell, message = REPORTED[fault]
    with pytest.raises(SimulationFailed, match=message):
        run_faulty(*shell)
