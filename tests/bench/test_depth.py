"""Cost of multiply-accumulate stages: cycles equal the engine's, and the plot contains every row."""

import duckdb
import pytest

from neuroncore_rtl.bench.fpga import depth
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.spec.config import PRESETS

FULL = PRESETS["full"]


def test_cycles_of_products_are_those_that_were_measured():
    """The expected cycles are those of the RTL with preset full, measured by `make bench PART=tensor`."""
    assert [depth.cycles_of_product(FULL, size) for size in (512, 1024)] == [(8389, 8192), (65733, 65536)]


def test_a_stage_costs_a_cycle_a_row():
    found = [depth.cycles_of_product(FULL.with_overrides(mac_latency=latency), 512)[0] for latency in Mac.CUTS]
    assert found == list(range(8389, 8389 + 128 * len(Mac.CUTS), 128))


def test_record_plot_and_table_have_both_widths(monkeypatch, tmp_path):
    cells = {"luts": 400, "carries": 50, "multipliers": 1, "registers": 300, "rams": 0}

    def measured(unit):
        unit.elaborate(None)
        return cells | {"fmax_mhz": 20.0 * unit.unit.latency + unit.unit.significand_bits}

    monkeypatch.setattr(depth.area, "measure_area", measured)
    monkeypatch.setattr(depth, "PLOT", tmp_path / "plots" / "stages.png")
    record = depth.measure_depth()
    assert [row["fmax_mhz"] for row in record["depth"]] == [20.0 * n + bits for bits in (12, 8) for n in Mac.CUTS]
    assert record["depth"][0]["utilisation"] == pytest.approx(0.9765, abs=1e-4)
    assert depth.PLOT.stat().st_size > 10_000
    data = duckdb.read_parquet(str(depth.PLOT.with_suffix(".parquet")))
    found = data.filter("fmax_mhz is not null").project("significand_bits, mac_latency, fmax_mhz").fetchall()
    assert found == [(bits, n, 20.0 * n + bits) for bits in (12, 8) for n in Mac.CUTS]
    assert data.filter("size = 512 and mac_latency = 1").project("utilisation").fetchall() == [
        (pytest.approx(0.9765, abs=1e-4),)
    ]
    [table] = depth.depth_tables(record)
    assert table.row_count == 2 * len(Mac.CUTS)
