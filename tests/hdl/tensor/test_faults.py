"""Engines that are broken on purpose: the comparison with golden, or the harness, notices each."""

import numpy as np
import pytest

from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import TENSOR_BITS
from neuroncore_rtl.tb.harness.run import run as run_device
from neuroncore_rtl.tb.harness.tensor import TensorDevice, TensorWork
from neuroncore_rtl.tb.sim.simulation import SimulationFailed
from neuroncore_rtl.tb.stimulus.tensor_programs import random_program
from tests.hdl.tensor.engines import faulty

CONFIG = PRESETS["tiny"]
SEED = 3

RESULTS = {
    "accumulates never": {
        "module": r"\w*partition_latency\d+",
        "ports": {"accumulate": "1'b0"},
    },
    "last place of a sum wrong once in 8": {
        "module": r"tile_\w+\.mac0",
        "ports": {"out": "sum"},
        "body": "    wire [31:0] sum; assign out = {sum[31:1], sum[0] ^ (sum[22:20] == 3'd5)};",
    },
    "rows beyond k take part": {
        "module": r"edge_\d+",
        "ports": {"moving_present": "4'hf", "stationary_present": "4'hf"},
    },
    "columns beyond m are written": {
        "module": r"psum_\d+_\w+",
        "ports": {"updates": "4'hf"},
    },
    "weights never swapped after the first time": {
        "module": r"tile_\w+",
        "ports": {"swap": "swap & ~swapped"},
        "body": "    reg swapped = 0; always @(posedge clk) if (swap) swapped <= 1;",
    },
}
"""Faults that leave the engine running with wrong results."""

REPORTED = {
    "weights swapped a cycle late": (
        r"tile_\w+",
        {"ports": {"swap": "late"}, "body": "    reg late = 0; always @(posedge clk) late <= swap;"},
        "unknown bits",
    ),
    "retires nothing": (
        "tensor_engine",
        {
            "ports": {
                "retired": "",
            },
            "body": "    assign retired = 0;",
        },
        "the engine did not finish",
    ),
    "takes no instruction": (
        "tensor_engine",
        {"ports": {"instructions__ready": ""}, "body": "    assign instructions__ready = 0;"},
        "the engine did not finish",
    ),
    "mistakes every opcode": (
        "tensor_engine",
        {"ports": {"instructions__payload": f"{{instructions__payload[{TENSOR_BITS - 1}:2], 2'b11}}"}},
        "the engine refused instruction 0: OPCODE",
    ),
}
"""Faults that leave results out, or undefined as those of weights that were never loaded, and what is said of them."""


def run(changed):
    """Return the words of PSUM that a broken engine delivers, and those that golden expects."""
    program, expected = random_program(np.random.default_rng(SEED), CONFIG, 30, longest=9)
    print(f"seed {SEED}, {expected.size} words")
    return run_device(changed, TensorWork(program=program), sim="icarus").memories["psum"], expected


@pytest.mark.parametrize("fault", RESULTS)
def test_wrong_results_are_noticed(fault):
    words, expected = run(faulty(TensorDevice(config=CONFIG), **RESULTS[fault]))
    differ = int((words != expected).sum())
    print(f"{differ} of {expected.size} words differ")
    assert words.shape == expected.shape
    assert 0 < differ < expected.size


def test_sound_engine_in_a_shell_passes():
    """Else the faults above would prove nothing."""
    words, expected = run(faulty(TensorDevice(config=CONFIG), module=r"tile_\w+", ports={"swap": "swap"}))
    assert expected.size > 0
    np.testing.assert_array_equal(words, expected)


@pytest.mark.parametrize("fault", REPORTED)
def test_missing_or_undefined_results_are_reported_and_nothing_hangs(fault):
    module, shell, message = REPORTED[fault]
    with pytest.raises(SimulationFailed, match=message):
        run(faulty(TensorDevice(config=CONFIG), module=module, **shell))
