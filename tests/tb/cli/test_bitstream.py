"""Bitstreams: what does not fit is said with its counts; the small one is built."""

import pytest

from neuroncore_rtl.hdl.board.ulx3s import Ulx3sPlatform
from neuroncore_rtl.tb.cli import bitstream
from neuroncore_rtl.tb.cli.registry import COMMANDS
from neuroncore_rtl.tb.sim.settings import UsageError

[BENCH] = [command for command in COMMANDS if command.name == "bitstream"]


def test_what_does_not_fit_is_said():
    counts = {"LUT4": 80_000, "CCU2C": 5_000, "TRELLIS_FF": 10, "MULT18X18D": 157, "DP16KD": 208}
    problem = bitstream.capacity_problem(counts, Ulx3sPlatform(), "tiny")
    assert problem == "tiny does not fit the LFE5U-85F: it takes 90,000 LUT4 of 83,640, 157 MULT18X18D of 156"
    counts |= {"LUT4": 73_640, "MULT18X18D": 156}
    assert bitstream.capacity_problem(counts, Ulx3sPlatform(), "tiny") is None


def test_baud_wrong():
    with pytest.raises(UsageError, match="baud must be within .*, not 12000000"):
        bitstream.main(BENCH.settings(["BAUD=12000000"]))


def test_cores_wrong():
    with pytest.raises(UsageError, match="CORES must be 1 on a board, not 2"):
        bitstream.main(BENCH.settings(["CORES=2"]))


@pytest.mark.slow
def test_link_and_memory_become_a_bitstream(capsys):
    assert bitstream.main(BENCH.settings(["CORE=0"])) == 0
    out = capsys.readouterr().out
    assert "MHz routed, 25 MHz asked for" in out and "ulx3s-memory/top.bit" in out
