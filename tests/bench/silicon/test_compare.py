"""Comparison with published figures: formulas of instructions, and fits validated on other rows."""

import numpy as np
import pytest
from rich.console import Console

from neuroncore_rtl.bench.silicon import compare as silicon
from neuroncore_rtl.bench.silicon import formulas, modelled, published
from neuroncore_rtl.bench.silicon.modelled import collective_rows, fit_collectives
from neuroncore_rtl.run import settings, shell
from neuroncore_rtl.spec.config import PRESETS

FULL, TRAINIUM = PRESETS["full"], PRESETS["trainium1"]
SIZES = (1, 2), (9, 2), (400, 2), (2, 31), (5, 31)


def made_with(host, step):
    rows = [{"bare": bare, "steps": steps} for bare, steps in SIZES]
    return [row | {"published": host + step * row["steps"] + row["bare"]} for row in rows]


@pytest.mark.parametrize("host, step", [(50, 3), (0, 2), (70, 0), (12.5, 0.25)])
def test_a_fit_finds_what_rows_were_made_with(host, step):
    assert fit_collectives(made_with(host, step)) == pytest.approx((host, step), abs=1e-9)


def test_a_fit_is_the_nearest_of_all_and_never_negative():
    rows = made_with(40, 2)
    rows[2]["published"] *= 3

    def cost(host, step):
        each = [host + step * row["steps"] + row["bare"] for row in rows]
        return sum((ours / row["published"] - 1) ** 2 for ours, row in zip(each, rows, strict=True))

    best = fit_collectives(rows)
    for other in np.random.default_rng(1).normal(best, (5, 0.5), (200, 2)):
        assert cost(*best) <= cost(*np.maximum(other, 0))
    assert fit_collectives([row | {"published": 100 - row["steps"]} for row in rows if row["bare"] < 10])[1] == 0
    assert fit_collectives([row | {"published": row["bare"] / 2} for row in rows]) == (0, 0)


def test_collectives_are_judged_by_rows_that_were_not_fitted():
    rows, constants = collective_rows(TRAINIUM)
    fitted = [row for row in rows if row["use"] == "fitted"]
    assert 0.4 < len(fitted) / len(rows) < 0.6
    assert fit_collectives(fitted) == constants and fit_collectives(rows) != constants
    host, step = constants
    for row in rows:
        ours = host + step * row["steps"] + row["bare"]
        assert row["ratio"] == pytest.approx(ours / row["published"])
    assert all(0.8 < row["ratio"] < 1.25 for row in rows if row["use"] == "judged")


def test_a_ceiling_counts_from_above_alone():
    assert [silicon.is_off(ratio) for ratio in (0.7, 0.8, 1.2, 1.3)] == [True, False, False, True]
    assert [silicon.is_off(ratio, ceiling=True) for ratio in (0.1, 1, 1.01)] == [False, False, True]


def test_kernels_that_set_a_rate_or_led_to_a_change_do_not_judge():
    uses = {3: "fitted", 5: "studied"}
    rows = [{"ratio": ratio, "ceiling": False, "use": uses.get(ratio, "judged")} for ratio in (0.7, 0.9, 1.2, 3, 5)]
    rows.append({"ratio": 0.1, "ceiling": True, "use": "judged"})
    counted = [silicon.kernel_summary(rows, judged=judged) for judged in (True, False)]
    assert [(one["kernels"], one["near"], one["median"]) for one in counted] == [(3, 2, 0.9), (5, 2, 1.2)]
    assert silicon.kernel_summary([], judged=True)["median"] is None


def test_formulas_hold_or_have_a_reason():
    rows = formulas.formula_rows(FULL)
    found = {row["name"]: row["cycles"] for row in rows}
    assert found["MULTIPLY_MOVING bf16"] == [[16, 64], [64, 64], [512, 512]]
    assert found["RECIPROCAL"][-1][1] == 8 * 512 and found["MULTIPLY_MOVING fp32"][-1] == [2048, 2048]
    reasons = {name for each in (rows, formulas.formula_rows(TRAINIUM)) for name, _ in silicon.formula_reasons(each)}
    assert set(formulas.REASONS) == {name for names in reasons for name in names.split(", ")} & set(found)
    near = [row for row in rows if not silicon.is_off(row["cycles"][-1][0] / row["cycles"][-1][1])]
    assert len(near) >= len(rows) - 4


def test_instructions_of_a_paced_machine_take_the_published_cycles_of_their_engines_clock():
    rows = formulas.formula_rows(TRAINIUM)
    near = {row["name"] for row in rows if all(0.9 <= ours / theirs <= 1.1 for ours, theirs in row["cycles"])}
    others = {row["name"] for row in rows} - near
    assert len(rows) == 28 and others == {"RECIPROCAL", "TRANSPOSE", "MAX8", "FIND_INDEX8"}
    assert others == {name for names, _ in silicon.formula_reasons(rows) for name in names.split(", ")}


def test_the_formulas_table_shows_what_the_formulas_lack():
    more = {row["name"]: row["whole"] - row["cycles"][-1][0] for row in formulas.formula_rows(TRAINIUM)}
    own = {name for name, cycles in more.items() if cycles}
    assert more.keys() - own == {"MULTIPLY_MOVING bf16", "MULTIPLY_MOVING fp32", "IOTA", "AFFINE_SELECT"}
    assert {more[name] for name in ("TENSOR_COPY", "TENSOR_TENSOR fp32", "ACTIVATE")} == {TRAINIUM.access_cycles}
    assert all(row["whole"] == row["cycles"][-1][0] for row in formulas.formula_rows(FULL))


def test_an_instruction_that_is_off_without_a_reason_is_an_error():
    wrong = {"name": "TENSOR_COPY", "formula": "max(64, N)", "cycles": [[16, 64], [64, 64], [1024, 512]]}
    with pytest.raises(KeyError, match="TENSOR_COPY"):
        silicon.formula_reasons([wrong])


def test_tables_fit_into_a_document():
    row = {
        "name": max((figure.time.name for figure in published.KERNELS), key=len)[::-1],
        "published": 12345.6, "ceiling": True, "cycles": 123456789,
        "ours": 12345.6, "ratio": 1.23, "slow": 12.34, "source": published.DMA_START.source,
        "use": "studied",
    }  # fmt: skip
    collectives, (host, step) = collective_rows(FULL)
    found = {
        "formulas": formulas.formula_rows(FULL), "core": [row], "collectives": collectives, "absent": ["ACCELOPT"],
        "refused": ["slow: no room"],
        "kernels": [silicon.kernel_summary([row | {"ceiling": False, "use": "judged"}], judged=True)],
        "fit": {"host_us": host, "step_us": step, "latency": 1804}, "preset": "full", "ghz": 1.4,
    }  # fmt: skip
    console = Console(width=shell.PLAIN_WIDTH)
    with console.capture() as capture:
        console.print(*silicon.silicon_tables({"silicon": found}))
    assert max(map(len, capture.get().splitlines())) <= shell.PLAIN_WIDTH
    assert "…" not in capture.get() and "no reason known" in capture.get()
    assert "did not run: slow: no room" in " ".join(capture.get().split())


def test_a_copy_starts_in_as_many_cycles_more_as_hbm_has():
    assert modelled.dma_start(FULL, 200) - modelled.dma_start(FULL, 64) == 136
    assert modelled.dma_start(TRAINIUM, 64) - modelled.dma_start(FULL, 64) == TRAINIUM.dma_start


def test_a_short_instruction_begins_the_published_time_after_the_one_that_it_depends_on():
    assert modelled.dependence(TRAINIUM) == round(published.DEPENDENCE.us * TRAINIUM.clock_mhz) - 1 == 2 * 264
    assert modelled.dependence(TRAINIUM.with_overrides(result_latency=TRAINIUM.result_latency + 7)) == 2 * 264 + 7
    # The published time contains the static overhead, which passes while the result is late.
    assert modelled.dependence(TRAINIUM.with_overrides(access_cycles=0)) == 2 * 264


def test_a_checkout_without_the_kernel_is_a_sentence(tmp_path):
    with pytest.raises(settings.UsageError, match="KERNEL must name an existing file"):
        modelled.kernel(FULL, published.KERNELS[0], tmp_path, [64])
