# amaranth: UnusedElaboratable=no

"""Both element-wise engines at their full size of 128 lanes: every operation, and a kernel; every byte golden's."""

from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.harness.elementwise import ElementwiseDevice
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from tests.tb.benches.instructions import check

FULL = PRESETS["full"]


def test_every_operation_on_128_lanes():
    device = ElementwiseDevice(config=FULL)
    program, *_ = check(device, 90, Choices(related=0.5), stall=40, seed=128)
    assert len({instruction.opcode for instruction in program.instructions}) >= len(Opcode) - 2
    check(device, 6, Choices(opcodes=(Opcode.TRANSPOSE,)), stall=0, seed=129)


def test_softmax_on_128_lanes():
    bench = bench_named("softmax")
    report = bench.run(bench.settings(["PRESET=full", "M=200", "N=300"]))
    assert report.problems == []
    assert report.utilisation > 0.9
