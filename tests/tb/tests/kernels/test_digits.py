"""Handwritten digits on the RTL, with an optional second pass."""

import re

from neuroncore_rtl.tb.tests.kernels import digits
from tests.tb.reports import passed, report_of


def test_digits_are_read_and_a_batch_with_doubts_is_computed_again(capsys):
    """One image of the second batch has a probability below CONFIDENCE, so only this batch is computed again."""
    report = passed("digits", "IMAGES=20 BATCH=12 PRESET=tiny CONFIDENCE=90")
    assert report.compared > 400_000
    assert report.rows["accuracy"] == report.rows["accuracy_of_numpy_fp32"] == 0.95
    said = [report.rows[f"batch_{number}"]["console"] for number in (0, 1)]
    assert said[0] == "bf16: unsure of 0 of 12 images"
    assert said[1] == "bf16: unsure of 1 of 8 images; fp32: unsure of 1 of 8 images"


def test_bench_fails_where_results_are_not_the_network_s(monkeypatch, capsys):
    monkeypatch.setattr(digits.digits, "load", lambda load=digits.digits.load: spoilt(load()))
    report = report_of("digits", "IMAGES=20 BATCH=20 PRESET=tiny CONFIDENCE=0")
    assert report.exit_status == 1 and report.mismatches == 0
    assert len(report.problems) == 1 and re.match("accuracy must be at least 95%, not", report.problems[0])


def spoilt(layers):
    return [layers[0], digits.Layer(*(part[..., [9, *range(9)]] for part in layers[1]))]
