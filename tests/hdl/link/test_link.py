"""A link between two routers: every flit once, in order, at full rate, whatever the wire does to frames."""

import pytest

from neuroncore_rtl.hdl.link.end import LinkEnd, window
from tests.hdl.link.pair import ENDS, PATHS, Pair, run_pair


def assert_delivered(outcome, flits):
    assert outcome.received == outcome.sent
    assert {path: len(sent) for path, sent in outcome.sent.items()} == {path: flits.get(path, 0) for path in PATHS}


@pytest.mark.parametrize(
    "errors,offer,drain",
    [(0.0, 1.0, 0.5), (0.001, 0.4, 1.0), (0.01, 1.0, 1.0), (0.03, 0.9, 0.6), (0.1, 1.0, 1.0), (0.1, 0.3, 0.3)],
)
def test_every_flit_once_in_order(errors, offer, drain):
    """Under bit errors, drops and repeats in equal parts, with stalls on either side."""
    flits = dict.fromkeys(PATHS, 250)
    seed = int(errors * 1000)
    outcome = run_pair(flits=flits, seed=seed, offer=offer, drain=drain, errors=errors, limit=8000, extra=3)
    assert_delivered(outcome, flits)
    counters = outcome.counters
    assert [end["flits"] for end in counters] == [500, 500]
    assert outcome.dead_at == [None, None]
    if errors >= 0.01:
        assert all(outcome.events.values())
    assert sum(end["crc_errors"] for end in counters) == outcome.events["flip"]
    replays = sum(end["replays"] for end in counters)
    assert replays if errors >= 0.01 else replays <= sum(outcome.events.values())


@pytest.mark.parametrize("latency", [1, 4, 13, 64])
def test_errors_at_other_latencies(latency):
    flits = dict.fromkeys(PATHS, 250)
    outcome = run_pair(latency=latency, flits=flits, seed=latency, offer=0.9, drain=0.9, errors=0.03, limit=8000)
    assert_delivered(outcome, flits)


@pytest.mark.parametrize("latency", [1, 3, 4, 27])
@pytest.mark.parametrize("vcs", [(0,), (1,), (0, 1)])
def test_one_flit_a_cycle(latency, vcs):
    """Both ways at once, without a gap, by one virtual channel or both; and the latency."""
    through = LinkEnd.SEND_LATENCY + latency + LinkEnd.RECEIVE_LATENCY
    flits = {(end, vc): 160 // len(vcs) for end in ENDS for vc in vcs}
    outcome = run_pair(link_bytes=1, latency=latency, flits=flits, limit=600)
    assert_delivered(outcome, flits)
    for end in ENDS:
        taken = sorted(cycle for vc in vcs for cycle in outcome.taken_at[end, vc])
        assert taken == list(range(160))
    for path, cycles in outcome.taken_at.items():
        assert outcome.offered_at[path] == [cycle + through for cycle in cycles]
    assert outcome.cycles == 160 + through


def test_turns():
    """Neither virtual channel waits for more than one flit of the other."""
    outcome = run_pair(link_bytes=1, flits=dict.fromkeys(PATHS, 100), limit=400)
    for path in PATHS:
        assert all(b - a == 2 for a, b in zip(outcome.taken_at[path], outcome.taken_at[path][1:], strict=False))


@pytest.mark.parametrize("full", [0, 1])
def test_a_full_virtual_channel_leaves_the_other_free(full):
    """Its sink takes nothing: `window` flits of it are taken, and all of the other's."""
    drain = {path: float(path[1] != full) for path in PATHS}
    outcome = run_pair(link_bytes=1, flits=dict.fromkeys(PATHS, 200), drain=drain, limit=500)
    for end, vc in PATHS:
        assert len(outcome.sent[end, vc]) == (window(2) if vc == full else 200)
        assert outcome.received[end, vc] == ([] if vc == full else outcome.sent[end, vc])
        assert outcome.dead_at[end] is None


def test_many_flits_wrap_every_number():
    """More than 2 ** 8 of them per channel, and more replays than 2 ** 4, with counts that wrap at different times."""
    flits = {(0, 0): 1100, (0, 1): 300, (1, 0): 5, (1, 1): 0}
    outcome = run_pair(link_bytes=1, flits=flits, seed=3, errors=0.05, limit=6000)
    assert_delivered(outcome, flits)
    assert outcome.counters[0]["replays"] > 32


def test_idle_link_is_not_dead():
    pair = Pair(1, 1)
    outcome = run_pair(pair=pair, flits={}, limit=LinkEnd.DEAD_CYCLES + 300, extra=LinkEnd.DEAD_CYCLES + 200)
    assert outcome.dead_at == [None, None]
    assert outcome.counters[0] == {
        "flits": 0, "replays": 0, "crc_errors": 0, "discarded": 0, "idle": outcome.cycles, "stalled": 0,
    }  # fmt: skip


@pytest.mark.parametrize("busy", [False, True])
def test_cut_link_is_dead(busy):
    """The end that hears nothing reports it in time, and the other one if flits of it are under way."""
    cut_at, slack = 100, 12
    flits = {(0, 0): 4000} if busy else {}
    limit = cut_at + LinkEnd.DEAD_CYCLES + slack
    outcome = run_pair(link_bytes=1, flits=flits, limit=limit, extra=limit, cut=(0, cut_at))
    assert (outcome.dead_at[0] is not None) == busy
    for cycle in filter(None, outcome.dead_at):
        assert cut_at + LinkEnd.DEAD_CYCLES - slack <= cycle <= limit
    assert outcome.dead_at[1] is not None
    for path in PATHS:
        assert outcome.sent[path][: len(outcome.received[path])] == outcome.received[path]


def test_window():
    """The least power of two less one that holds a round trip."""
    for latency in range(1, 65):
        round_trip = 2 * latency + LinkEnd.ROUND_TRIP
        assert round_trip <= window(latency) < 2 * round_trip
        assert window(latency) & (window(latency) + 1) == 0


@pytest.mark.parametrize("latency", [0, 124])
def test_window_wrong(latency):
    with pytest.raises(ValueError, match=rf"latency must be from 1 to 123, not {latency}"):
        window(latency)
