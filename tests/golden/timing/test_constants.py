# amaranth: UnusedElaboratable=no

"""Latencies of the hardware against `spec.timing`."""

import pytest

from neuroncore_rtl.golden.timing import banks, events, tensor
from neuroncore_rtl.hdl.arith import divide, power
from neuroncore_rtl.hdl.dma.checker import DmaChecker
from neuroncore_rtl.hdl.scalar.block import ActivationBlock
from neuroncore_rtl.hdl.tensor.engine import TensorEngine as TensorHardware
from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import PRESETS


def test_derived_constants_are_those_of_the_specification():
    actual = {
        "DIVIDE_INTERVAL": divide.Fp32Divider.INTERVAL,
        "DIVIDE_LATENCY": divide.Fp32Divider.LATENCY,
        "REMAINDER_INTERVAL": divide.Fp32Divider.REMAINDER_INTERVAL,
        "REMAINDER_LATENCY": divide.Fp32Divider.REMAINDER_LATENCY,
        "POWER_LATENCY": power.Fp32Power.LATENCY,
        "SCALAR_LANES_LATENCY": tuple(ActivationBlock(1, depth).latency for depth in (1, 2)),
        "DMA_CHECKER_INTERVAL": DmaChecker.INTERVAL,
    }
    assert actual == {name: getattr(timing, name) for name in actual}


@pytest.mark.parametrize("preset", PRESETS)
def test_latency_of_a_column_is_that_of_the_hardware(preset):
    config = PRESETS[preset]
    assert tensor.TensorEngine(config, events.Agenda(), banks.Banks(config)).latency == TensorHardware.latency(config)


@pytest.mark.parametrize("alu_latency", [1, 2, 6])
def test_latency_of_the_vector_lanes_is_that_of_the_hardware(alu_latency):
    assert timing.vector_lanes_latency(alu_latency) == 1 + VectorLane(alu_latency).latency
