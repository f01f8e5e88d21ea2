# amaranth: UnusedElaboratable=no

"""A core that is broken on purpose: the comparison with golden, the search for races or the report notices each fault.

One build has all faults, and a plusarg chooses one of them; with none it must pass. It also is a core of another shape:
more columns than rows, two ports to HBM, narrow ones.
"""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Cause
from neuroncore_rtl.tb.check.core_batch import run_batch
from neuroncore_rtl.tb.harness.cores import CoreDevice
from tests.hdl.tensor.engines import faulty
from tests.tb.harness.core_images import VECTOR, random_image
from tests.tb.harness.faulty_hbm import FaultyHbm

CONFIG = Config(rows=2, columns=3, dma_engines=3, hbm_ports=2, hbm_bytes=8)
SEED = 11

NONE = 0
SILENT, DROPPED, LOST, TWICE, SWAPPED, IGNORED, HASTY, MISPLACED, BEYOND = range(1, 10)


SHELLS = {
    "vector_engine": ({"retired": "ends"}, f"wire ends; assign retired = ends & (fault != {SILENT});", "1'b0"),
    "scalar_engine": (
        {"instructions__valid": f"instructions__valid | (fault == {TWICE} && seen != 0 && seen < 3)"}, "",
        "instructions__valid & instructions__ready"),
    "tensor_engine": (
        {"psum__ready": "serves"},
        f"wire serves; assign psum__ready = serves | (fault == {IGNORED} && psum__valid);", "1'b0"),
    "dma_engine": (
        {"write__data": "bytes", "write__address": "address"}, f"""
    wire [63:0] bytes;
    wire [17:0] address;
    assign write__data = fault == {SWAPPED} && seen[2:0] == 3 ? {{bytes[63:16], bytes[7:0], bytes[15:8]}} : bytes;
    assign write__address = fault == {BEYOND} && seen == 40 ? address ^ 18'h10000 : address;""",
        "write__valid & write__ready"),
    "queue_dma": (
        {"update__valid": "updates", "update__ready": "update__ready | lost"}, f"""
    wire updates, lost;
    assign lost = fault == {LOST} && seen == 2;
    assign update__valid = updates & ~lost;""",
        "updates & (update__ready | lost)"),
    "queue_vector": (
        {"completions": f"completions & ~(fault == {DROPPED} && seen == 2)", "error": "report"}, f"""
    wire [80:0] report;
    assign error = fault == {MISPLACED} && report[0] ? report ^ (81'd1 << 16) : report;""",
        "completions"),
    "queue_scalar": ({"wait_satisfied": f"wait_satisfied | (fault == {HASTY})"}, "", "1'b0"),
}  # fmt: skip
"""What is around modules: connections that differ, Verilog that makes them from `fault`, the fault that was chosen, and
`seen`; what `seen` counts since reset."""


@cache
def broken_core():
    """Return the core with all faults in it."""
    changed = CoreDevice(machine=CONFIG)
    for module, (ports, body, event) in SHELLS.items():
        text = f"""
    reg [3:0] fault;
    reg [15:0] seen;
    initial if (!$value$plusargs("fault=%d", fault)) fault = 0;
    {body}
    always @(posedge clk) if (rst) seen <= 0; else if ({event}) seen <= seen + 16'd1;
"""
        changed = faulty(changed, module, ports=ports, body=text)
    return changed


@cache
def images():
    """Return two random programs, and one whose vector queue has a record for no engine."""
    rng, found, base = np.random.default_rng(SEED), [], 0
    for _ in range(3):
        found.append(random_image(rng, CONFIG, 60, base))
        base += -(-len(found[-1].data) // 4096) * 4096
    (block,) = (block for block in found[-1].blocks if block.queue == VECTOR)
    data = bytearray(found[-1].data)
    data[block.address + RECORD_BYTES * (block.count // 2) - found[-1].base] &= ~7
    return found[:2], replace(found[-1], data=bytes(data))


def run(fault, chosen, *, dump=False):
    """Run images on the core with a fault; return what differs, a sentence each."""
    print(f"seed {SEED}")
    behaviour = FaultyHbm(latency=16, stall=20, seed=SEED, fault=fault)
    batch = run_batch(broken_core(), chosen, behaviour=behaviour, limit=200_000, dump=dump)
    print("\n".join(batch.failures))
    return batch


def test_a_core_of_another_shape_without_faults_passes():
    """Else the faults below would prove nothing."""
    sound, broken = images()
    batch = run(NONE, sound, dump=True)
    assert not batch.failures and set(batch.mismatches.values()) == {0}
    batch = run(NONE, [broken])
    assert batch.runs[0].error.cause == Cause.ENGINE
    assert not any("error must be" in failure for failure in batch.failures)


FAULTS = {
    "silent engine": (SILENT, r"error must be none, not .*(WATCHDOG|STUCK)"),
    "completion dropped": (DROPPED, r"error must be none, not .*(WATCHDOG|STUCK)"),
    "update lost": (LOST, r"error must be none, not .*WATCHDOG"),
    "taken twice": (TWICE, r"must"),
    "swapped bytes": (SWAPPED, r"RTL \w\w, golden \w\w"),
    "arbitration": (IGNORED, r"RTL \w\w, golden \w\w"),
    "hasty": (HASTY, r"race: \w+ \(.*\) .*; .*\(scalar"),
    "wrong address in a report": (MISPLACED, r"error must be vector, record .*, not vector, record"),
}


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_faults_are_noticed(fault, said):
    sound, broken = images()
    batch = run(fault, [broken] if fault == MISPLACED else sound)
    assert any(re.search(said, failure) for failure in batch.failures)


def test_a_write_beside_what_programs_use_is_noticed():
    """The copy of all that is on chip shows where it went."""
    assert run(BEYOND, images()[0], dump=True).mismatches["SBUF"] > 0
