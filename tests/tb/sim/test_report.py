"""tb.sim.report: a run that compared nothing has failed, and a record says what the table says."""

import io
import json

from rich.console import Console

from neuroncore_rtl.tb.sim.report import Report


def report(**changes) -> Report:
    fields = {"test": "t", "label": "l", "settings": {"M": 3, "N": None}, "compared": 9, "mismatches": 0}
    return Report(**{**fields, **changes})


def shown(what: Report) -> str:
    output = io.StringIO()
    what.show(Console(file=output, width=120))
    return output.getvalue()


def test_bit_exact_run_passes():
    assert report().bit_exact
    assert report().exit_status == 0
    assert "PASSED" in shown(report())


def test_run_that_compared_nothing_fails():
    assert not report(compared=0).bit_exact
    assert report(compared=0).exit_status == 1
    assert "FAILED: nothing was compared" in shown(report(compared=0))


def test_mismatch_fails():
    assert not report(mismatches=1).bit_exact
    assert report(mismatches=1).exit_status == 1


def test_other_failure_fails():
    failed = report(failures=("accuracy 0.2 is below 0.95",))
    assert failed.exit_status == 1
    assert "FAILED: accuracy 0.2 is below 0.95" in shown(failed)


def test_utilisation_is_ideal_over_actual_cycles():
    assert report(cycles=200, ideal_cycles=150).utilisation == 0.75
    assert report().utilisation is None


def test_record_replaces_the_former_one_whole(tmp_path):
    report(mismatches=2).write(tmp_path)
    path = report(extra={"accuracy": 0.97}).write(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["t-l.json"]
    record = json.loads(path.read_text())
    assert record["settings"] == {"M": 3, "N": None}
    assert record["accuracy"] == 0.97
    assert record["problems"] == []


def test_details_are_in_the_record_alone():
    detailed = report(details={"links": {"chip 0 up -> chip 1": {"flits": 7}}})
    assert detailed.as_json()["links"]["chip 0 up -> chip 1"] == {"flits": 7}
    assert "chip 0" not in shown(detailed)
