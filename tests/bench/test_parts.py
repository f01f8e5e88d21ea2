"""`make bench` on small arrays: both ways run, and their record is complete."""

import json

import pytest

from neuroncore_rtl.bench import commands, core, program, run, tensor
from neuroncore_rtl.run.sim.vectors import LANES_VARIABLE, WAYS, use_vectors
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16

[TEST] = [command for command in commands.BENCH_COMMANDS if command.name == "bench"]

BUILD = {"elaboration_s": 1.0, "cold_build_s": 2.0, "build_peak_gib": 0.5}


@pytest.fixture
def bench(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv(LANES_VARIABLE, raising=False)
    monkeypatch.setattr(run, "RESULTS", tmp_path)

    def measured(*words):
        assert TEST.run(TEST.settings(words)) == 0
        [record] = tmp_path.iterdir()
        return json.loads(record.read_text()), capsys.readouterr().out

    return measured


@pytest.fixture
def cold(monkeypatch):
    ways = []

    def cold_build(elaborate, design):
        ways.append(WAYS[not use_vectors()])
        return BUILD

    for part in (tensor, core):
        monkeypatch.setattr(part, "cold_build", cold_build)
    monkeypatch.setattr(tensor, "_config", lambda size: PRESETS["tiny"])
    monkeypatch.setattr(tensor, "_warm_start", lambda size: 0.5)
    monkeypatch.setattr(tensor, "PRODUCTS", ((3, 5, 4, BF16),))
    monkeypatch.setattr(core, "PRODUCTS", (("tiny", 16),))
    monkeypatch.setattr(core, "CURVE_PRESET", "tiny")
    monkeypatch.setattr(core, "CURVE_SIZES", (4096,))
    return ways


@pytest.mark.slow
def test_tensor_engine_in_both_ways(bench, cold):
    record, output = bench("PART=tensor", "SIZE=4")
    assert cold == list(WAYS)
    row = record["sizes"]["4"]
    assert row["bit_exact"] and row["cycles"] > row["ideal_cycles"] and row["vector"].keys() == row["scalar"].keys()
    assert row["speed_up"] == row["vector"]["cycles_per_s"] / row["scalar"]["cycles_per_s"]
    assert record["products"][0]["cycles"] < row["cycles"]
    assert output.startswith(f"{record['cpu']}, {record['cores']} cores, LANES=vector ({record['vectors']}, ")


def test_core_with_start_and_end_in_one_way(bench, cold):
    record, output = bench("PART=core", "LANES=vector")
    assert cold == ["vector"] and record["ways"] == ["vector"]
    [row] = record["core"]
    assert row["vector"]["whole_cycles_per_s"] < row["vector"]["cycles_per_s"]
    assert "with start" in output and "speed-up" not in output


def test_programs_in_both_orders(bench, monkeypatch):
    monkeypatch.setattr(program, "LAYER", "SEQ=4 DIM=6 HEADS=2 HIDDEN=5")
    monkeypatch.setattr(program, "CALLS", 40)
    record, output = bench("PART=program")
    assert [row["order"] for row in record["program"]] == ["program", "scheduled"] * 2
    # A round has four calls with five records, two of them for the product; another record fills the first tile.
    assert record["program"][-1]["records"] == 10 * 5 + 1
    assert all(row["each"] == pytest.approx(row["seconds"] / row["records"] * 1e6) for row in record["program"])
    assert "LANES" not in output and "us / record" in output


def test_what_is_measured_is_what_part_chooses_from():
    assert ("all", *run.PARTS) == commands.PARTS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # after a test that has started JAX
def test_cold_builds_of_both_ways(bench):
    record, _ = bench("PART=elementwise", "SIZE=4")
    for row in record["engines"]:
        assert all(0 < row[way]["elaboration_s"] < row[way]["cold_build_s"] for way in WAYS)
