"""run.report: a run without comparisons fails, and the record agrees with the table."""

import io
import json
import math

import pytest
from rich.console import Console

from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.spec.config import Config
from tests.tb.reports import unreadable


def report(**changes) -> Report:
    fields = {"test": "t", "label": "l", "settings": {"M": 3, "N": None}, "compared": 9, "mismatches": 0}
    return Report(**{**fields, **changes})


def table_of(what: Report) -> str:
    output = io.StringIO()
    what.show(Console(file=output, width=120))
    return output.getvalue()


@pytest.mark.parametrize(
    "changes, verdict",
    [
        ({}, "PASSED"),
        ({"compared": 0}, "FAILED: nothing was compared"),
        ({"mismatches": 1}, "FAILED: 1 of 9 results differ from the golden model"),
        ({"failures": ("accuracy 0.2 is below 0.95",)}, "FAILED: accuracy 0.2 is below 0.95"),
    ],
)
def test_verdict(changes, verdict):
    judged = report(**changes)
    assert judged.bit_exact is {"compared": None, "mismatches": False}.get(next(iter(changes), ""), True)
    assert ("bit-exact" in table_of(judged)) == (judged.bit_exact is not None)
    assert judged.exit_status == (verdict != "PASSED")
    assert verdict in table_of(judged)


def test_utilisation_is_ideal_over_actual_cycles():
    assert report(cycles=200, ideal_cycles=150).utilisation == 0.75
    assert report().utilisation is None


def test_record_replaces_the_former_one_whole(tmp_path):
    report(mismatches=2).write(tmp_path)
    path = report(rows={"accuracy": 0.97}).write(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["t-l.json"]
    record = json.loads(path.read_text())
    assert (record["settings"], record["accuracy"], record["problems"]) == ({"M": 3, "N": None}, 0.97, [])


@pytest.mark.parametrize("changes", [{"modelled": True}, {"judge": "the program"}])
def test_nothing_is_said_to_differ_where_nothing_was_compared(changes):
    judged = report(compared=0, **changes)
    assert judged.as_json()["bit_exact"] is None and judged.exit_status == 0
    assert "bit-exact" not in table_of(judged)


def test_numbers_are_numbers_in_the_record_and_right_aligned_in_the_table():
    table = [{"line": "a.py:5", "cycles": 1200, "share": Share(0.5763)}, {"line": "a.py:12", "cycles": 7}]
    rows = {
        "loss": [2.42, 2.299],
        "same": True,
        "left": None,
        "kinds": {},
        "lines": table,
        "far": math.inf,
        "error": {"max": 1e-3},
    }
    made = report(rows=rows)
    record = json.loads(json.dumps(made.as_json(), allow_nan=False))
    assert {name: record[name] for name in rows} == rows | {"far": None}
    assert table_of(made).splitlines()[2:11] == [
        "loss       2.42 2.299",
        "same       yes",
        "left       none",
        "kinds      none",
        "lines      cycles  share",
        "  a.py:5    1,200  57.6%",
        "  a.py:12       7",
        "far        inf",
        "error      max 0.001",
    ]


def test_texts_that_are_numbers_and_keys_that_are_words_are_noticed():
    wrong = {"a": "57.6%", "b": ["2,047.0"], "c": {"d e": 1}, "F": 1, "g": "2.420 to 2.299", "h": "1e-3", "i": "nan"}
    assert len([*unreadable(wrong)]) == len(wrong)
    assert [*unreadable({"a": 0.5, "b": ["x 1", "[4, 4] bf16"], "c": {"d_e": None, "8": True}, "e": ""})] == []


def test_details_are_in_the_record_alone():
    detailed = report(details={"links": {"chip 0 up -> chip 1": {"flits": 7}}})
    assert detailed.as_json()["links"]["chip 0 up -> chip 1"] == {"flits": 7}
    assert "chip 0" not in table_of(detailed)


@pytest.mark.parametrize(
    ("clock", "launch", "shown"),
    [
        (0, 0, None),
        (2800, 0, "10.00 at 2,800 MHz"),
        (2800, 14_000, "10.00 at 2,800 MHz; 15.00 with the start and the end of a run"),
    ],
)
def test_a_machine_with_a_clock_reports_microseconds_beside_cycles(clock, launch, shown):
    config = Config(rows=4, columns=4, clock_mhz=clock, launch_cycles=launch)
    report = Report(test="matmul", compared=1, cycles=28_000, config=config)
    assert dict(report._rows()).get("microseconds") == shown
    found = report.as_json()
    assert (found.get("microseconds"), found.get("run_microseconds")) == (10 if clock else None, 15 if launch else None)
