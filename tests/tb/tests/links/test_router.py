"""Traffic on small fabrics.

One build contains all faults; a plusarg selects one. Without a fault it must pass.
"""

import re
from dataclasses import replace

import pytest

from neuroncore_rtl.hdl.link import end, flit, router
from neuroncore_rtl.run.harness.link_view import Cut
from neuroncore_rtl.run.harness.links.fabric import FabricDevice, Traffic
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.sim import doctor, simulation
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.tb.tests.links import router as bench
from tests.hdl.tensor.engines import faulty
from tests.tb.reports import passed

RING = Instance(chips=3, width=1, link_bytes=8)
LIMIT = 100_000
FLITS = 40

NONE = 0
LOST, TWICE, SWAPPED, CHANGED, MISLED, HUNG, DEAF = range(1, 8)

AT = 20  # index of the affected flit of core 2, channel 0

PORTS = {
    "o__0__valid": "ours",
    "o__0__payload": "flit",
    "o__0__ready": "taken",
    "i__0__payload": "sent",
    "rx_present__0": f"rx_present__0 & ~(fault == {DEAF} && chip == 1)",
}

WIDTH = flit.flit_layout(RING.link_bytes).size

BODY = f"""
    reg [3:0] fault;
    reg [15:0] seen;
    reg again, kept_valid;
    reg [{WIDTH - 1}:0] kept;
    wire [{WIDTH - 1}:0] flit, sent;
    wire ours;
    initial if (!$value$plusargs("fault=%d", fault)) fault = 0;
    wire now = chip == 1 && seen == {AT} && ours;
    wire keep = fault == {SWAPPED} && now;
    wire show = kept_valid && seen == {AT + 2};
    wire lose = fault == {LOST} && now;
    wire twice = fault == {TWICE} && now && !again;
    wire hang = fault == {HUNG} && now;
    wire taken = !show && (keep || lose || (o__0__ready && !twice && !hang));
    assign o__0__valid = show || (ours && !keep && !lose && !hang);
    assign o__0__payload = show ? kept : flit ^ ({{{WIDTH - 1}'d0, fault == {CHANGED} && now}} << 60);
    assign sent = i__0__payload ^ {{{WIDTH - 1}'d0, fault == {MISLED} && chip == 1 && i__0__payload[40:17] == 7}};
    always @(posedge clk)
        if (rst) begin
            seen <= 0;
            again <= 0;
            kept_valid <= 0;
        end else begin
            if (ours && taken) seen <= seen + 16'd1;
            if (twice && o__0__ready) again <= 1;
            if (keep) begin
                kept <= flit;
                kept_valid <= 1;
            end else if (show && o__0__ready) kept_valid <= 0;
        end
"""

BROKEN = faulty(FabricDevice(instance=RING), r"link_node_[0-9_]+", ports=PORTS, body=BODY)
"""A ring with all faults built in."""


def run(sim: str, pattern: str, *, fault: int = NONE, **traffic):
    partners = bench.partners_of(RING, pattern)
    chosen = {"flits": FLITS, "pattern": bench.PATTERNS[pattern], "partners": partners} | traffic
    given = Traffic(limit=LIMIT, patience=bench.PATIENCE, **chosen)
    outcome = run_device(BROKEN, given, sim=sim, plusargs=[f"+fault={fault}"])
    failures = list(bench.failures_of(RING, given, outcome))
    print("\n".join(failures))
    return given, outcome, failures


@pytest.mark.parametrize("pattern", bench.PATTERNS)
def test_every_pattern_passes_disturbed_and_stalled(pattern):
    given, outcome, failures = run("verilator", pattern, flits=400, errors=0.01, stall=0.4, load=0.5)
    assert not failures and outcome.ending == Ending.FINISHED and outcome.counters["wrong"] == 0
    assert outcome.counters["received"].total() == outcome.counters["sent"].total() == 12 * 400
    for name in ("disturbed_frames", "retries", "crc_errors"):
        assert bench.measures_of(RING, given, outcome)[name] > 0


def test_simulators_agree_in_every_cycle():
    doctor.require("iverilog")
    outcomes = [run(sim, "uniform", flits=15, errors=0.01, stall=0.2)[1] for sim in simulation.SIMULATORS]
    assert outcomes[0].ending == Ending.FINISHED
    assert replace(outcomes[0], seconds=0) == replace(outcomes[1], seconds=0)


def test_latency_of_an_empty_fabric():
    *_, outcome, failures = run("verilator", "neighbour", flits=5, load=0.004)
    link = end.LinkEnd.SEND_LATENCY + RING.link_latency + end.LinkEnd.RECEIVE_LATENCY
    assert not failures
    assert outcome.counters["latency"] == outcome.counters["longest"] == 1 + 2 * router.Router.LATENCY + link


ONE_FEWER, ONE_MORE = (f"from core 0 to core 2 on channel 0 40 flits must arrive, not {count}" for count in (39, 41))
UNORDERED = "out of order: at core 2, channel 0: flit {} of core 0 on channel 0, expected {}"

SAID = {
    LOST: [ONE_FEWER, UNORDERED.format(21, 20)],
    TWICE: [ONE_MORE, UNORDERED.format(20, 21)],
    SWAPPED: [UNORDERED.format(21, 20)],
    CHANGED: ["wrong data: at core 2, channel 0: flit 20 of core 0"],
    MISLED: ["wrong data, out of order: at core 5, channel 0: flit 7 of core 2"],
    HUNG: ["every flit must arrive, but the run ended as STUCK"],
    DEAF: ["link chip 1 up -> chip 2 is dead"],
}


@pytest.mark.parametrize("fault", SAID)
def test_faults_are_noticed(fault):
    *_, failures = run("verilator", "neighbour", fault=fault)
    assert all(any(said in failure for failure in failures) for said in SAID[fault])


def test_a_way_that_is_not_golden_s_is_noticed():
    given, outcome, failures = run("verilator", "uniform")
    assert not failures
    counters = list(outcome.links.counters)
    counters[2] = counters[2] | {"flits": 5}
    changed = replace(outcome, links=replace(outcome.links, counters=counters))
    (failure,) = bench.failures_of(RING, given, changed)
    assert re.fullmatch(r"link chip 1 up -> chip 2 must carry \d+ flits, not 5", failure)


@pytest.mark.parametrize("wire", range(6))
def test_a_cut_wire_is_noticed_by_name_and_in_time(wire):
    given, outcome, failures = run("verilator", "uniform", flits=2000, cut=Cut(wire, 500))
    names = ["chip 0 up -> chip 1", "chip 2 up -> chip 0", "chip 1 up -> chip 2"]
    assert not failures and outcome.ending == Ending.STUCK
    assert outcome.counters["received"].total() < outcome.counters["sent"].total()
    assert bench.measures_of(RING, given, outcome)["dead_links"] == [f"link {names[wire % 3]}"]
    assert end.LinkEnd.DEAD_CYCLES <= bench.noticed_after(RING, given.cut, outcome) <= bench.NOTICE


def test_a_cut_that_nobody_notices_fails():
    given, outcome, _ = run("verilator", "uniform")
    (failure,) = bench.failures_of(RING, replace(given, cut=Cut(1, 10)), outcome)
    assert failure == "link chip 0 down -> chip 2 was cut, but its receiving end has not declared the link dead"


def test_partners_on_a_torus():
    torus = Instance(chips=20, topology=Topology.TORUS, width=4)
    assert bench.partners_of(torus, "uniform") == []
    assert bench.partners_of(torus, "neighbour")[:4] == [2, 6, 3, 7]
    assert bench.partners_of(torus, "tornado")[:4] == [2 * 9, 2 * 15, 2 * 9 + 1, 2 * 15 + 1]


@pytest.mark.parametrize("shape", [pytest.param("CHIPS=4 TOPOLOGY=torus", marks=pytest.mark.slow), "CHIPS=2 CUT=1"])
def test_bench(shape):
    report = passed("router", f"LINK_BYTES=8 SIM=icarus FLITS=100 LOAD=30 {shape}")
    assert report.compared >= 100
    assert "CUT" not in shape or report.rows["dead_links"] == ["link chip 1 up -> chip 0"]
