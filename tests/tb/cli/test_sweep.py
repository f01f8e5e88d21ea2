"""make sweep, from its file to plots."""

import json
import re

import duckdb
import pytest
from click.testing import CliRunner

from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.cli import sweep
from neuroncore_rtl.tb.cli.commands import app
from tests.house.tree import ROOT
from tests.tb.campaign.jobs import InProcess

MODELLED = 'test = "matmul"\n[settings]\nTARGET = "model"\nPRESET = "tiny"\n[sweep]\n"M K N" = [4, 8, 16]\n'


@pytest.fixture
def run_sweep(tmp_path, monkeypatch):
    """Return a function that runs a sweep in this process, or in a worker."""
    monkeypatch.setattr(sweep, "SWEEPS", tmp_path / "sweeps")
    spec, executor_of = tmp_path / "mine.toml", sweep.executor_of

    def of(text, *, alone=True):
        spec.write_text(text)
        monkeypatch.setattr(sweep, "executor_of", lambda settings: InProcess() if alone else executor_of(settings))
        return CliRunner().invoke(app, ["sweep", f"SPEC={spec}", "WORKERS=1"])

    return of


def test_a_sweep_has_a_table_rows_and_pictures(run_sweep, tmp_path):
    done = run_sweep(MODELLED, alone=False)
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


def test_the_example_of_seeds_has_curves_statistics_and_ratios(run_sweep, tmp_path):
    text = (ROOT / "examples" / "seeds.toml").read_text().replace("seeds = 20", "seeds = 2\nbaseline = {RATE = 9000}")
    text = re.sub("(?m)^(RATE|STEPS) = .*", "", text)
    text += 'STEPS = 4\nPRESET = "tiny"\nBATCH = 8\n[sweep]\nRATE = [9000, 1]\n'
    done = run_sweep(text)
    folder = tmp_path / "sweeps" / "mine"
    curves, losses = duckdb.read_parquet(str(folder / "train-curves.parquet")), {}
    for row in Store(folder / "rows.jsonl").rows():
        losses[row["RATE"], row["SEED"]] = row["curves"]["loss"]["sr"]
    assert len(losses) == 4 and losses[1, 1] != losses[1, 2]
    for (rate, seed), own in losses.items():
        rows = curves.filter(f"RATE = {rate} and SEED = {seed}").project('step, "loss.sr"').fetchall()
        assert rows == [*enumerate(own, start=1)] and len(own) == 4
    for name in ("train-curves.png", "train-curves.csv", "train-measures.png", "train-measures.parquet", "table.csv"):
        assert (folder / name).is_file()
    statistics = duckdb.read_parquet(str(folder / "statistics.parquet")).filter("measure = 'loss.sr.last_quarter'")
    found = dict(statistics.project("RATE, mean").fetchall())
    assert found == {rate: pytest.approx((losses[rate, 1][-1] + losses[rate, 2][-1]) / 2) for rate in (9000, 1)}
    table = duckdb.read_parquet(str(folder / "table.parquet")).filter("RATE = 1 and SEED = 2")
    ratio = losses[1, 2][-1] / losses[9000, 2][-1]
    assert table.project('"loss.sr.last_quarter_ratio", bit_exact').fetchall() == [(pytest.approx(ratio), None)]
    assert "ratios of train: to RATE=9000" in done.output and "deviation" in done.output


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
