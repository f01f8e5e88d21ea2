import pytest

from neuroncore_rtl.hdl.link.end import LinkEnd, sequence_window
from tests.hdl.link.pair import ENDS, PATHS, run_pair
from tests.hdl.simulation import slow


def delivered(**options):
    outcome = run_pair(**options)
    assert outcome.received == outcome.sent
    return outcome


@pytest.mark.parametrize(
    "errors,offer,drain",
    [(0.0, 1.0, 0.5), (0.03, 0.9, 0.6), (0.1, 0.3, 0.3), *slow((0.001, 0.4, 1.0), (0.01, 1.0, 1.0), (0.1, 1.0, 1.0))],
)
def test_every_flit_once_in_order(errors, offer, drain):
    flits = 250 if errors in (0.001, 0.01) else 120
    outcome = delivered(flits=flits, seed=int(errors * 1000), offer=offer, drain=drain, errors=errors)
    assert [end["flits"] for end in outcome.counters] == [2 * flits] * 2
    assert outcome.dead_at == [None, None]
    assert sum(end["crc_errors"] for end in outcome.counters) == outcome.events["flip"]
    replays = sum(end["replays"] for end in outcome.counters)
    if errors >= 0.01:
        assert replays and len(outcome.events) == 3
    else:
        assert replays <= outcome.events.total()


@pytest.mark.parametrize("latency", [1, *slow(4, 13, 64)])
def test_errors_at_other_latencies(latency):
    delivered(link_bytes=2, latency=latency, flits=150, seed=latency, offer=0.9, drain=0.9, errors=0.03)


@pytest.mark.parametrize(
    ("latency", "vcs"),
    [
        *((1, vcs) for vcs in ((0,), (1,), (0, 1))),
        (27, (0, 1)),
        *slow((4, (0,)), (4, (1,)), (4, (0, 1)), (27, (0,)), (27, (1,))),
    ],
)
def test_one_flit_per_cycle_in_both_directions_with_the_latency(latency, vcs):
    through = LinkEnd.SEND_LATENCY + latency + LinkEnd.RECEIVE_LATENCY
    flits = {(end, vc): 100 // len(vcs) for end in ENDS for vc in vcs}
    outcome = delivered(link_bytes=1, latency=latency, flits=flits)
    for end in ENDS:
        assert sorted(cycle for vc in vcs for cycle in outcome.sent_at[end, vc]) == list(range(100))
    for path, cycles in outcome.sent_at.items():
        assert outcome.received_at[path] == [cycle + through for cycle in cycles]


@pytest.mark.parametrize("full", [*slow(0), 1])
def test_a_blocked_virtual_channel_accepts_a_window_and_does_not_block_the_other(full):
    drain = {path: float(path[1] != full) for path in PATHS}
    outcome = run_pair(link_bytes=1, flits=200, drain=drain, cycles=500)
    for end, vc in PATHS:
        assert len(outcome.sent[end, vc]) == (sequence_window(2) if vc == full else 200)
        assert outcome.received[end, vc] == ([] if vc == full else outcome.sent[end, vc])
        assert outcome.dead_at[end] is None


@pytest.mark.slow
def test_many_flits_wrap_every_number():
    # More than 2 ** 8 flits per channel and more than 2 ** 4 replays, with counts that wrap at different times.
    flits = {(0, 0): 1100, (0, 1): 300, (1, 0): 5, (1, 1): 0}
    assert delivered(link_bytes=1, flits=flits, seed=3, errors=0.05).counters[0]["replays"] > 32


@pytest.mark.parametrize("counts", [(0, 0), *slow(((0x55, 0xAA),), ((0xAA, 0x55),))])
def test_idle_link_is_not_dead(counts):
    cycles = LinkEnd.DEAD_CYCLES + 300
    outcome = run_pair(link_bytes=1, latency=2, flits={(end, 0): counts[end] for end in ENDS}, cycles=cycles)
    assert outcome.dead_at == [None, None]
    for end in ENDS:
        seen = {"flits": counts[end], "idle": cycles - counts[end]}
        assert outcome.counters[end] == dict.fromkeys(outcome.counters[end], 0) | seen


@pytest.mark.parametrize(("busy", "arrived"), [(False, 100), (True, 0x55), *slow((True, 0xAA))])
def test_cut_link_is_dead(busy, arrived):
    """The receiving end reports in time; the other end also reports if it has at least one unacknowledged flit."""
    cut_at, slack = arrived + LinkEnd.SEND_LATENCY + 2, 12
    limit = cut_at + LinkEnd.DEAD_CYCLES + slack
    outcome = run_pair(link_bytes=1, flits={(0, 0): 4000 * busy}, cycles=limit, cut=(0, cut_at))
    assert (outcome.dead_at[0] is not None) == busy
    for cycle in filter(None, outcome.dead_at):
        assert cut_at + LinkEnd.DEAD_CYCLES - slack <= cycle <= limit
    assert outcome.dead_at[1] is not None
    assert not busy or len(outcome.received[0, 0]) == arrived
    for path in PATHS:
        assert outcome.sent[path][: len(outcome.received[path])] == outcome.received[path]


def test_window_is_the_least_power_of_two_less_one_that_holds_a_round_trip():
    for latency in range(1, 65):
        round_trip = 2 * latency + LinkEnd.ROUND_TRIP
        assert round_trip <= sequence_window(latency) < 2 * round_trip
        assert sequence_window(latency) & (sequence_window(latency) + 1) == 0


@pytest.mark.parametrize("latency", [0, 124])
def test_window_wrong(latency):
    with pytest.raises(ValueError, match=rf"latency must be from 1 to 123, not {latency}"):
        sequence_window(latency)
