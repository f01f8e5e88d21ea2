"""Store of rows: each row is complete or absent."""

import json
import multiprocessing
import os
import signal

import duckdb
import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.plotting import write_parquet
from neuroncore_rtl.tb.campaign.store import Store

ROWS = [{"key": str(n), "label": f"run {n}", "status": "passed", "cycles": n} for n in range(5)]


def fill_store(path, rows=ROWS):
    with Store(path) as store:
        for row in rows:
            store.add(row)


def test_rows_are_read_back(tmp_path):
    fill_store(tmp_path / "new" / "rows.jsonl")
    store = Store(tmp_path / "new" / "rows.jsonl")
    assert store.rows() == ROWS
    assert store.has_result("3") and not store.has_result("5")


def test_last_row_of_a_key_counts_and_a_broken_one_is_not_known(tmp_path):
    path = tmp_path / "rows.jsonl"
    fill_store(path, [ROWS[0], ROWS[1], {**ROWS[0], "status": "broken"}])
    store = Store(path)
    assert [row["key"] for row in store.rows()] == ["0", "1"]
    assert not store.has_result("0") and store.has_result("1")
    fill_store(path, [{**ROWS[0], "status": "failed"}])
    assert Store(path).has_result("0")


@pytest.mark.parametrize("cut", range(1, 8))
def test_an_unfinished_line_is_cut_off(tmp_path, cut):
    path = tmp_path / "rows.jsonl"
    fill_store(path)
    os.truncate(path, path.stat().st_size - cut)
    assert Store(path).rows() == ROWS[:-1]
    fill_store(path, ROWS[-1:])
    assert Store(path).rows() == ROWS
    assert [json.loads(line) for line in path.read_text().splitlines()] == ROWS


def test_a_disk_that_is_full_costs_the_row_that_does_not_fit(tmp_path):
    path = tmp_path / "rows.jsonl"
    fill_store(path, ROWS[:2])
    child = multiprocessing.get_context("spawn").Process(target=_fill_up, args=(path, path.stat().st_size + 20))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert Store(path).rows() == ROWS[:2]


def _fill_up(path, size):
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Store(path) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        with pytest.raises(OSError) as raised:
            store.add(ROWS[2])
        assert raised.value.filename == str(path)
        assert not store.has_result("2")
        assert path.read_bytes().endswith(b"\n")


def test_a_second_campaign_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    with Store(path) as store:
        store.add(ROWS[0])
        with pytest.raises(UsageError, match="must be written by one campaign at a time"):
            Store(path).__enter__()
    fill_store(path, ROWS[1:])
    assert Store(path).rows() == ROWS


def test_what_is_no_number_is_refused(tmp_path):
    with Store(tmp_path / "rows.jsonl") as store, pytest.raises(ValueError):
        store.add({**ROWS[0], "cycles": float("nan")})
    assert Store(tmp_path / "rows.jsonl").rows() == []


def test_names_that_differ_in_case_are_columns_of_their_own(tmp_path):
    path = write_parquet([{"GROUPS": 1, "groups": 2}, {"Groups": 3}], tmp_path / "rows.parquet")
    found = duckdb.read_parquet(str(path))
    assert found.columns == ["GROUPS", "groups_", "Groups__"]
    assert found.fetchall() == [(1, 2, None), (None, None, 3)]


def test_parquet_has_all_columns_with_their_types(tmp_path):
    rows = [{"a": 1, "b": True, "c": 1, "d": "2026-01-01"}, {"a": 2, "c": 0.5, "e": 1}, {"e": "x", "a": None}]
    path = write_parquet(rows, tmp_path / "rows.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.parquet"]
    found = duckdb.read_parquet(str(path))
    assert dict(zip(found.columns, map(str, found.types), strict=True)) == {
        "a": "BIGINT", "b": "BOOLEAN", "c": "DOUBLE", "d": "VARCHAR", "e": "VARCHAR",
    }  # fmt: skip
    first, *rest = found.fetchall()
    assert first == (1, True, 1.0, "2026-01-01", None)
    assert rest == [(2, None, 0.5, None, "1"), (None, None, None, None, "x")]
