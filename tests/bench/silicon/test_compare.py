"""Comparison with published figures: formulas of instructions, and fits validated on other rows."""

import numpy as np
import pytest
from rich.console import Console

from neuroncore_rtl.bench.silicon import compare as silicon
from neuroncore_rtl.bench.silicon import formulas, modelled, published
from neuroncore_rtl.bench.silicon.compare import collective_rows, fit_collectives
from neuroncore_rtl.run import report, settings


def made_with(host, step):
    rows = [{"bare": bare, "steps": steps} for bare, steps in ((1, 2), (9, 2), (400, 2), (2, 31), (5, 31))]
    return [row | {"published": host + step * row["steps"] + row["bare"]} for row in rows]


@pytest.mark.parametrize("host, step", [(50, 3), (0, 2), (70, 0), (12.5, 0.25)])
def test_a_fit_finds_what_rows_were_made_with(host, step):
    assert fit_collectives(made_with(host, step)) == pytest.approx((host, step), abs=1e-9)


def test_a_fit_is_the_nearest_of_all_and_never_negative():
    rows = made_with(40, 2)
    rows[2]["published"] *= 3

    def cost(host, step):
        return sum(((host + step * row["steps"] + row["bare"]) / row["published"] - 1) ** 2 for row in rows)

    host, step = fit_collectives(rows)
    for other in np.random.default_rng(1).normal((host, step), (5, 0.5), (200, 2)):
        assert cost(host, step) <= cost(*other)
    assert fit_collectives([row | {"published": 100 - row["steps"]} for row in rows if row["bare"] < 10])[1] == 0
    assert fit_collectives([row | {"published": row["bare"] / 2} for row in rows]) == (0, 0)


def test_collectives_are_judged_by_rows_that_were_not_fitted():
    rows, (host, step) = collective_rows()
    fitted = [row for row in rows if row["fitted"]]
    assert 0.4 < len(fitted) / len(rows) < 0.6
    assert fit_collectives(fitted) == (host, step)
    for row in rows:
        assert row["ratio"] == pytest.approx((host + step * row["steps"] + row["bare"]) / row["published"])
    assert fit_collectives(rows) != (host, step)


def test_a_ceiling_counts_from_above_alone():
    assert [silicon.is_off(ratio) for ratio in (0.7, 0.8, 1.2, 1.3)] == [True, False, False, True]
    assert [silicon.is_off(ratio, ceiling=True) for ratio in (0.1, 1, 1.01)] == [False, False, True]


def test_formulas_hold_or_have_a_reason():
    rows = formulas.formula_rows()
    found = {row["name"]: row["cycles"] for row in rows}
    assert found["MULTIPLY_MOVING bf16"] == [[16, 64], [64, 64], [512, 512]]
    assert found["RECIPROCAL"][-1][1] == 8 * 512 and found["MULTIPLY_MOVING fp32"][-1] == [2048, 2048]
    reasons = dict(silicon.formula_reasons(rows))
    assert set(formulas.REASONS) == {name for names in reasons for name in names.split(", ")} & set(found)
    near = [row for row in rows if not silicon.is_off(row["cycles"][-1][0] / row["cycles"][-1][1])]
    assert len(near) >= len(rows) - 4


def test_an_instruction_that_is_off_without_a_reason_is_an_error():
    wrong = {"name": "TENSOR_COPY", "formula": "max(64, N)", "cycles": [[16, 64], [64, 64], [1024, 512]]}
    with pytest.raises(KeyError, match="TENSOR_COPY"):
        silicon.formula_reasons([wrong])


def test_tables_fit_into_a_document():
    row = {
        "name": "allocated attention 4096 x 128 bf16", "published": 12345.6, "ceiling": True, "cycles": 123456789,
        "ours": 12345.6, "ratio": 1.23, "slow": 12.34, "more": "", "source": published.DMA_START.source,
    }  # fmt: skip
    collectives, (host, step) = collective_rows()
    found = {
        "formulas": formulas.formula_rows(), "core": [row], "collectives": collectives, "checkout": False,
        "fit": {"host_us": host, "step_us": step, "latency": 1804},
    }  # fmt: skip
    console = Console(width=report.PLAIN_WIDTH)
    with console.capture() as capture:
        console.print(*silicon.silicon_tables({"silicon": found}))
    assert max(map(len, capture.get().splitlines())) <= report.PLAIN_WIDTH
    assert "…" not in capture.get() and "no reason known" in capture.get()


def test_a_copy_starts_in_as_many_cycles_more_as_hbm_has():
    assert modelled.dma_start(200) - modelled.dma_start(64) == 136


def test_a_checkout_without_the_kernel_is_a_sentence(tmp_path):
    with pytest.raises(settings.UsageError, match="KERNEL must name an existing file"):
        modelled.kernel(published.KERNELS[0], tmp_path, [64])
