"""make sweep, from its file to plots."""

import json

import duckdb
import pytest
from click.testing import CliRunner

from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.cli import sweep
from neuroncore_rtl.tb.cli.commands import app

MODELLED = 'test = "matmul"\n[settings]\nTARGET = "model"\nPRESET = "tiny"\n[sweep]\n"M K N" = [4, 8, 16]\n'


@pytest.fixture
def run_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "SWEEPS", tmp_path / "sweeps")
    spec = tmp_path / "mine.toml"

    def of(text, *words):
        spec.write_text(text)
        return CliRunner().invoke(app, ["sweep", f"SPEC={spec}", "WORKERS=2", *words])

    return of


def test_a_sweep_has_a_table_rows_and_pictures(run_sweep, tmp_path):
    done = run_sweep(MODELLED)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "sweeps" / "mine"
    names = {path.name for path in folder.iterdir()}
    assert names >= {"rows.jsonl", "rows.parquet", "table.csv", "matmul-sizes.png", "matmul-roofline.png", "runs"}
    found = duckdb.read_parquet(str(folder / "rows.parquet"))
    assert found.project("M, K, N, status").fetchall() == [(n, n, n, "passed") for n in (4, 8, 16)]
    cycles = [row["cycles"] for row in Store(folder / "rows.jsonl").rows()]
    assert all(f"{count:,}" in done.output for count in cycles) and len(cycles) == 3
    assert "sweep: 4 tasks, 3 known: 4 passed" in run_sweep(MODELLED.replace("16]", "16, 32]")).output
    lines = (folder / "rows.jsonl").read_text().splitlines()
    assert len(lines) == 4
    (folder / "rows.jsonl").write_text("".join(json.dumps({**json.loads(line), "cycles": 77}) + "\n" for line in lines))
    assert run_sweep(MODELLED).output.count(" 77 ") == 3


def test_a_run_that_is_refused_by_its_test_is_a_row_and_the_status_says_so(run_sweep, tmp_path):
    done = run_sweep('test = "allreduce"\n[sweep]\nGROUPS = [3, 5]\n')
    assert done.exit_code == 1
    assert "0 passed, 0 failed, 2 broken" in done.output
    assert "GROUPS must divide 8 cores" in done.output


def test_nothing_runs_if_a_run_is_not_valid(run_sweep, tmp_path):
    done = run_sweep(MODELLED + "STALL = [0, 1000]\n")
    assert done.exit_code == 2
    assert "mine.toml: sweep, STALL: STALL must be an integer from 0 to 240, not '1000'" in done.output
    assert not (tmp_path / "sweeps").exists()


def test_a_sweep_needs_its_file():
    for words, said in (([], "SPEC must be given"), (["SPEC=gone.toml"], "SPEC must be an existing file")):
        done = CliRunner().invoke(app, ["sweep", *words])
        assert done.exit_code == 2 and said in done.output
