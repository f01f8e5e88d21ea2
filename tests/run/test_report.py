"""run.report: a run without comparisons fails, and the record agrees with the table."""

import io
import json

import pytest
from rich.console import Console

from neuroncore_rtl.run.report import Report


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
    assert judged.bit_exact is (None if "compared" in changes else "mismatches" not in changes)
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


def test_details_are_in_the_record_alone():
    detailed = report(details={"links": {"chip 0 up -> chip 1": {"flits": 7}}})
    assert detailed.as_json()["links"]["chip 0 up -> chip 1"] == {"flits": 7}
    assert "chip 0" not in table_of(detailed)
