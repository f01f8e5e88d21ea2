"""Bitstreams: resource counts if the design does not fit."""

import pytest

from neuroncore_rtl.hdl.board.ulx3s import Ulx3sPlatform
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.cli import bitstream
from neuroncore_rtl.tb.cli.registry import COMMANDS

LEFT = "Info:       1000 |      250        749 |  250   749 |         7|       3.16       3.16|\n"  # a router's output

[TEST] = [command for command in COMMANDS if command.name == "bitstream"]


def test_what_does_not_fit_is_said():
    counts = {"LUT4": 80_000, "CCU2C": 5_000, "TRELLIS_FF": 10, "MULT18X18D": 157, "DP16KD": 208}
    problem = bitstream.capacity_problem(counts, Ulx3sPlatform(), "tiny")
    assert problem == "tiny does not fit the LFE5U-85F: it needs 90,000 LUT4 of 83,640, 157 MULT18X18D of 156"
    counts |= {"LUT4": 73_640, "MULT18X18D": 156}
    assert bitstream.capacity_problem(counts, Ulx3sPlatform(), "tiny") is None


@pytest.mark.parametrize(
    ("word", "message"),
    [("BAUD=12000000", "baud must be within .*, not 12000000"), ("CORES=2", "CORES must be 1 on a board, not 2")],
)
def test_variable_wrong(word, message):
    with pytest.raises(UsageError, match=message):
        bitstream.make_bitstream(TEST.settings([word]))


@pytest.mark.parametrize(("clocks", "tried", "packed"), [((36.5, 39.0, None, 38.0), 4, 2), ((None, 41.0, 42.0), 2, 2)])
def test_the_fastest_of_the_seeds_is_packed(clocks, tried, packed, tmp_path, monkeypatch, capsys):
    seeds = []

    def route(command, directory, log, doing):
        seeds.append(int(command[-1]))
        if clocks[seeds[-1] - 1] is None:
            log.write_text(LEFT)
            return False
        (directory / "report.json").write_text("{}")
        (directory / "top.config").write_text(f"{seeds[-1]}")
        return True

    monkeypatch.setattr(bitstream, "route", route)
    monkeypatch.setattr(bitstream, "slowest", lambda *_: {"critical_path": [], "fmax_mhz": clocks[seeds[-1] - 1]})
    settings = TEST.settings(["MHZ=40", "SEED=1", f"SEEDS={len(clocks)}"])
    assert bitstream._route(tmp_path, ["nextpnr-ecp5"], None, "tiny", settings) == clocks[packed - 1]
    assert seeds == list(range(1, tried + 1))
    assert (tmp_path / "top.config").read_text() == f"{packed}"
    assert "the router made no progress, 7 connections remain" in capsys.readouterr().out


def test_none_of_the_seeds_is_routed(tmp_path, monkeypatch, capsys):
    def stands_still(command, directory, log, doing):
        log.write_text(LEFT)
        return False

    monkeypatch.setattr(bitstream, "route", stands_still)
    assert bitstream._route(tmp_path, ["nextpnr-ecp5"], None, "tiny", TEST.settings(["SEED=1", "SEEDS=2"])) == 0
    assert "tiny is not routed with seeds 1 to 2: try SEED=3" in capsys.readouterr().out


@pytest.mark.slow
def test_link_and_memory_become_a_bitstream(capsys):
    assert bitstream.make_bitstream(TEST.settings(["CORE=0"])) == 0
    out = capsys.readouterr().out
    assert "MHz routed, 40 MHz requested" in out and "ulx3s-memory/top.bit" in out
