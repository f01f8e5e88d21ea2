"""A router that will not end is stopped; one that takes long is not."""

import sys

import pytest

from neuroncore_rtl.bench.routing import FEW, PATIENCE, overused, routed, stands_still
from neuroncore_rtl.tb.sim.simulation import BuildFailed

LINE = "Info:     iter={} wires=1135649 overused={} overuse={} archfail=NA\n"


def said(rounds) -> str:
    return "".join(LINE.format(number, wires, wires) for number, wires in enumerate(rounds, 1))


def test_what_a_router_says_is_read():
    assert overused("Info: Running main router loop...\n" + said([77_355, 47_510, 12, 0])) == [77_355, 47_510, 12, 0]


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        [90_000, 50_000, 30_000],
        [90_000, 50_000, 9_800] + 10 * [9_900],
        [90_000, 900] + 100 * [901],
        [90_000, *range(5_000, 4_000, -1)],
    ],
    ids=("none", "fewer", "soon", "few", "slow"),
)
def test_one_that_gets_on_is_waited_for(rounds):
    assert not stands_still(rounds)


def test_one_that_does_not_is_given_up_sooner_when_many_are_left():
    many, few = PATIENCE
    for left, patience in ((FEW + 1, many), (FEW, few)):
        assert not stands_still([90_000, left] + patience * [left])
        assert stands_still([90_000, left] + (patience + 1) * [left])


def script(tmp_path, rounds, then: str) -> list[str]:
    """Return a command that writes a router's rounds, and then does something."""
    text = f"import sys, time\nopen('top.tim', 'w').write({said(rounds)!r})\n{then}\n"
    (tmp_path / "router.py").write_text(text)
    return [sys.executable, "router.py"]


def test_a_router_that_stands_still_is_stopped(tmp_path):
    command = script(tmp_path, [5_000] * 20, "time.sleep(600)")
    assert not routed(command, tmp_path, tmp_path / "top.tim", "nextpnr")


def test_one_that_ends_has_ended_and_an_older_log_does_not_count(tmp_path):
    (tmp_path / "top.tim").write_text(said([5_000] * 20))
    assert routed(script(tmp_path, [5_000, 3, 0], "time.sleep(1.5)"), tmp_path, tmp_path / "top.tim", "nextpnr")


def test_one_that_fails_is_an_error_with_what_it_said(tmp_path):
    with pytest.raises(BuildFailed, match="nextpnr failed in .*\n.*no room"):
        routed(script(tmp_path, [], "sys.exit('no room')"), tmp_path, tmp_path / "top.tim", "nextpnr")
