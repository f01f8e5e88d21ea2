"""TEST=tensor_parallel on four tiny cores."""

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import reduction
from neuroncore_rtl.run.sim.vectors import threads_choice
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.tests.links import options, tensor_parallel
from neuroncore_rtl.tb.tests.links.tensor_parallel import TEST, error_shares
from tests.tb.reports import passed, report_of

SMALL = "M=32 K=32 N=16"


@pytest.mark.parametrize("more", ["ERRORS=0.005 STALL=40 STRIPS=1", "CORES=1 DTYPE=fp32 STRIPS=2"])
def test_a_layer_is_golden(shared_cores, more):
    report = passed("tensor_parallel", f"{SMALL} {more}")
    assert report.cycles > report.rows["cycles_without_all_reduce"] > report.ideal_cycles
    assert report.rows["link_flits"] > 0


def test_cores_side_by_side_are_the_same_for_any_number_of_threads(shared_cores):
    """Three threads share the four cores; of eight threads, each core in turn uses all."""
    reports = []
    for number in (1, 3, 8):
        with threads_choice(number) as used:
            report = passed("tensor_parallel", f"{SMALL} STRIPS=4 ERRORS=0.005 STALL=40").as_json()
        reports.append(report | {"simulated_cycles_per_second": None})
        assert set(used) == {number}
    assert reports == 3 * reports[:1]


def test_a_sum_in_another_order_is_noticed(shared_cores, monkeypatch):
    """The equation is independent of golden's image, so a wrong equation differs from both."""
    orders = reduction.orders
    whole = tensor_parallel.expected_result

    def wrong(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(reduction, "orders", lambda last, ranks: orders(last, ranks)[::-1])
            return whole(*arguments)

    monkeypatch.setattr(tensor_parallel, "expected_result", wrong)
    report = report_of("tensor_parallel", f"{SMALL} STRIPS=4")
    assert 0 < report.mismatches and not report.bit_exact


def test_errors_are_of_what_rounding_allows():
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16 for shape in ((4, 8), (8, 4)))
    exact = (x << 16).astype(np.uint32).view(np.float32) @ (w << 16).astype(np.uint32).view(np.float32)
    right = error_shares(exact.view(np.uint32), x, w, BF16, 2)
    assert 0 <= right[0] < 1e-6 and right[1] <= 1
    exact[2, 1] *= 1.001
    assert error_shares(exact.view(np.uint32), x, w, BF16, 2)[1] > 1


def test_the_roofline_names_what_binds():
    settings = TEST.settings(f"{SMALL} STRIPS=4".split())
    instance = options.instance_of(tensor_parallel.Settings({**settings.values, "TARGET": "core"}))
    (group,) = options.groups_of(instance, 2, 1, 1)
    assert tensor_parallel.ring_bound(instance, CollectiveKind.ALL_REDUCE, group, 2048, 2048) == 192
    found = tensor_parallel._roofline(instance, group, 32, 32, 16, BF16, 0)
    assert found == {"bound": "hbm", "array": 256, "hbm": 432, "links": 192}
