"""Traffic on small fabrics: sound ones pass on both simulators, and each fault of a broken one is noticed.

One build has all faults, and a plusarg chooses one of them; with none it must pass.
"""

import re
from dataclasses import replace

import pytest

from neuroncore_rtl.hdl.link.end import LinkEnd
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.tb.benches.router import (
    BENCH,
    NOTICE,
    PATIENCE,
    PATTERNS,
    failures_of,
    measures_of,
    noticed_after,
    partners_of,
)
from neuroncore_rtl.tb.harness.disturbance import Cut
from neuroncore_rtl.tb.harness.fabric import FabricDevice, Traffic
from neuroncore_rtl.tb.harness.outcome import Ending
from neuroncore_rtl.tb.harness.run import run as run_device
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.doctor import require
from neuroncore_rtl.tb.sim.settings import UsageError
from tests.hdl.tensor.engines import faulty

RING = Instance(chips=3, width=1, link_bytes=8)
LIMIT = 100_000
FLITS = 40

NONE = 0
LOST, TWICE, SWAPPED, CHANGED, MISLED, HUNG, DEAF = range(1, 8)

AT = 20
"""The flit of core 2, channel 0, which something happens to."""

PORTS = {
    "o__0__valid": "ours",
    "o__0__payload": "flit",
    "o__0__ready": "taken",
    "i__0__payload": "sent",
    "rx_present__0": f"rx_present__0 & ~(fault == {DEAF} && chip == 1)",
}

WIDTH = flit_layout(RING.link_bytes).size

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
"""A ring with all faults in it."""


def run(sim: str, pattern: str, *, fault: int = NONE, **traffic):
    """Run traffic on the ring with a fault; return it, what became of it, and what is wrong with that."""
    partners = partners_of(RING, pattern)
    given = Traffic(
        **{"flits": FLITS, "limit": LIMIT, "patience": PATIENCE, "pattern": PATTERNS[pattern], "partners": partners}
        | traffic
    )
    outcome = run_device(BROKEN, given, sim=sim, plusargs=[f"+fault={fault}"])
    failures = list(failures_of(RING, given, outcome))
    print("\n".join(failures))
    return given, outcome, failures


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_passes_disturbed_and_stalled(pattern):
    given, outcome, failures = run("verilator", pattern, flits=400, errors=0.01, stall=0.4, load=0.5)
    assert not failures and outcome.ending == Ending.FINISHED and outcome.counters["wrong"] == 0
    assert outcome.counters["received"].total() == outcome.counters["sent"].total() == 12 * 400
    for name in ("disturbed_frames", "retries", "crc_errors"):
        assert measures_of(RING, given, outcome)[name] > 0


def test_simulators_agree_in_every_cycle():
    require("iverilog")
    outcomes = [run(sim, "uniform", flits=15, errors=0.01, stall=0.2)[1] for sim in simulation.SIMULATORS]
    assert outcomes[0].ending == Ending.FINISHED
    assert replace(outcomes[0], seconds=0) == replace(outcomes[1], seconds=0)


def test_latency_of_an_empty_fabric():
    *_, outcome, failures = run("verilator", "neighbour", flits=5, load=0.004)
    link = LinkEnd.SEND_LATENCY + RING.link_latency + LinkEnd.RECEIVE_LATENCY
    assert not failures
    assert outcome.counters["latency"] == outcome.counters["longest"] == 1 + 2 * Router.LATENCY + link


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (LOST, "from core 0 to core 2 on channel 0 40 flits must arrive, not 39"),
        (LOST, "out of order: at core 2, channel 0: flit 21 of core 0 on channel 0, expected 20"),
        (TWICE, "out of order: at core 2, channel 0: flit 20 of core 0 on channel 0, expected 21"),
        (TWICE, "from core 0 to core 2 on channel 0 40 flits must arrive, not 41"),
        (SWAPPED, "out of order: at core 2, channel 0: flit 21 of core 0 on channel 0, expected 20"),
        (CHANGED, "wrong data: at core 2, channel 0: flit 20 of core 0"),
        (MISLED, "wrong data, out of order: at core 5, channel 0: flit 7 of core 2"),
        (HUNG, "every flit must arrive, but the run ended as STUCK"),
        (DEAF, "link chip 1 up -> chip 2 is dead"),
    ],
)
def test_faults_are_noticed(fault, said):
    *_, failures = run("verilator", "neighbour", fault=fault)
    assert any(re.search(said, failure) for failure in failures)


def test_a_way_that_is_not_golden_s_is_noticed():
    given, outcome, failures = run("verilator", "uniform")
    assert not failures
    counters = list(outcome.links.counters)
    counters[2] = counters[2] | {"flits": 5}
    changed = replace(outcome, links=replace(outcome.links, counters=counters))
    assert re.fullmatch(r"link chip 1 up -> chip 2 must carry \d+ flits, not 5", *failures_of(RING, given, changed))


@pytest.mark.parametrize("wire", range(6))
def test_a_cut_wire_is_noticed_by_name_and_in_time(wire):
    given, outcome, failures = run("verilator", "uniform", flits=2000, cut=Cut(wire, 500))
    names = ["chip 0 up -> chip 1", "chip 2 up -> chip 0", "chip 1 up -> chip 2"]
    assert (
        not failures
        and outcome.ending == Ending.STUCK
        and outcome.counters["received"].total() < outcome.counters["sent"].total()
    )
    assert measures_of(RING, given, outcome)["dead_links"] == f"link {names[[0, 1, 2, 0, 1, 2][wire]]}"
    assert LinkEnd.DEAD_CYCLES <= noticed_after(RING, given.cut, outcome) <= NOTICE


def test_a_cut_that_nobody_notices_fails():
    given, outcome, _ = run("verilator", "uniform")
    (failure,) = failures_of(RING, replace(given, cut=Cut(1, 10)), outcome)
    assert failure == "link chip 0 down -> chip 2 was cut, and the end that listens to it has not noticed"


def test_partners_on_a_torus():
    torus = Instance(chips=20, topology=Topology.TORUS, width=4)
    assert partners_of(torus, "uniform") == []
    assert partners_of(torus, "neighbour")[:4] == [2, 6, 3, 7]
    assert partners_of(torus, "tornado")[:4] == [2 * 9, 2 * 15, 2 * 9 + 1, 2 * 15 + 1]


@pytest.mark.parametrize("topology", Topology)
def test_bench(topology):
    words = ["LINK_BYTES=8", "SIM=icarus", "FLITS=100", "LOAD=30"]
    shape = ["CHIPS=4", "TOPOLOGY=torus"] if topology == Topology.TORUS else ["CHIPS=2", "CUT=1"]
    report = BENCH.run(BENCH.settings([*words, *shape]))
    assert report.problems == [] and report.compared >= 100
    if topology == Topology.RING:
        assert report.extra["dead_links"] == "link chip 1 up -> chip 0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["CHIPS=4", "CUT=8"], "CUT must be a wire from 0 to 7, not 8"),
        (["ERRORS=0.02"], "ERRORS must be a number from 0 to 0.01, not '0.02'"),
        (["CHIPS=6", "TOPOLOGY=torus", "WIDTH=4"], "chips of a torus must be"),
    ],
)
def test_what_cannot_be_run_is_refused(words, message):
    with pytest.raises(UsageError, match=message):
        BENCH.run(BENCH.settings(words))
