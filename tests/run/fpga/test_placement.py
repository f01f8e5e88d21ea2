"""Detection of a router without progress."""

import sys

import pytest

from neuroncore_rtl.run.fpga.placement import PATIENCE, route, stands_still
from neuroncore_rtl.run.sim.simulation import BuildFailed

HEADING = "Info:    IterCnt |  w/ripup   wo/ripup |  w/r  wo/r |      arcs| batch(sec) total(sec)|\n"
LINE = "Info:  {:9}000 |   324335     667665 |  349   651 | {:9}|       2.87     902.55|\n"


def router_log(left) -> str:
    return HEADING + "".join(LINE.format(number, connections) for number, connections in enumerate(left, 1))


def test_one_that_gets_on_is_waited_for():
    slow = [90_000, *range(5_000, 4_000, -1)]
    for left in ([], [90_000, 50_000, 30_000], [90_000, 9_800] + PATIENCE * [9_900], slow):
        assert not stands_still(left), left
    assert stands_still([90_000, 9_800] + (PATIENCE + 1) * [9_800])


def script(tmp_path, left, then: str) -> list[str]:
    (tmp_path / "router.py").write_text(f"import sys, time\nopen('top.tim', 'w').write({router_log(left)!r})\n{then}\n")
    return [sys.executable, "router.py"]


def test_a_router_that_stands_still_is_stopped(tmp_path):
    assert not route(script(tmp_path, [5_000] * 100, "time.sleep(600)"), tmp_path, tmp_path / "top.tim", "nextpnr")


def test_one_that_ends_has_ended_and_an_older_log_does_not_count(tmp_path):
    (tmp_path / "top.tim").write_text(router_log([5_000] * 100))
    assert route(script(tmp_path, [5_000, 3, 0], "time.sleep(1.5)"), tmp_path, tmp_path / "top.tim", "nextpnr")


def test_one_that_fails_is_an_error_with_what_it_said(tmp_path):
    with pytest.raises(BuildFailed, match="nextpnr failed in .*\n.*no room"):
        route(script(tmp_path, [], "sys.exit('no room')"), tmp_path, tmp_path / "top.tim", "nextpnr")
