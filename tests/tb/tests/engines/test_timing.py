"""Cycles of every instruction equal the formulas of `spec.costs`."""

from dataclasses import replace
from functools import partial

import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.hdl.elementwise.checker import ElementwiseChecker
from neuroncore_rtl.run import settings, targets
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.costs import is_slow, latency, period, step_cycles
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa import SCALAR_OPCODES, VECTOR_OPCODES, Access, AluOp, Opcode
from neuroncore_rtl.spec.pacing import GPSIMD
from neuroncore_rtl.tb.check.costs import CASES, ELEMENTS, cost_table, formula
from neuroncore_rtl.tb.tests.engines import timing as bench
from neuroncore_rtl.tb.tests.engines.timing import has_units_for, measurements_of, timing_job
from tests.tb.reports import passed, report_of
from tests.tb.tests.instructions import SHARED

BUBBLE = 0
"""Idle cycles between the last step of a fast instruction and the first step of an independent fast instruction."""


@pytest.fixture(scope="module")
def measurements():
    result = targets.execute(timing_job(SHARED), targets.Rtl())
    assert result.bit_exact
    return measurements_of(result)


def test_every_instruction_of_any_length_takes_the_cycles_of_the_formulas(measurements):
    assert {m.case.build(m.elements, SHARED).opcode for m in measurements} == VECTOR_OPCODES | SCALAR_OPCODES
    assert len(measurements) == len(CASES) * len(ELEMENTS)
    assert [m.line() for m in measurements if not m.as_expected] == []


def test_independent_instructions_leave_no_bubble(measurements):
    """An instruction's steps take as long as the checker; the steps of the next instruction follow without a gap."""
    followed = 0
    for m in measurements:
        instruction = m.case.build(m.elements, SHARED)
        steps, unseen = step_cycles(instruction, SHARED), latency(instruction, SHARED) - ElementwiseChecker.LATENCY - 1
        if steps >= ElementwiseChecker.INTERVAL and period(instruction, SHARED) < unseen:
            assert set(m.measured["overlapped"]) == {steps + BUBBLE}
            followed += 1
    assert followed > 50


def test_a_wrong_formula_is_noticed(monkeypatch):
    monkeypatch.setattr(bench, "period", lambda instruction, config: period(instruction, config) + 1)
    found = measurements_of(targets.execute(timing_job(SHARED, cases=CASES[:2], elements=(8,)), targets.Rtl()))
    assert [m.as_expected for m in found] == [False, False]
    assert "by the formulas" in found[0].line()


def test_what_a_machine_has_no_unit_for_is_left_out():
    names = {case.name for case in CASES if not has_units_for(case, PRESETS["fpga"])}
    assert {"tensor_tensor, divide", "max8", "bn_stats", "dropout"} & names and "tensor_copy" not in names
    assert all(has_units_for(case, PRESETS["tiny"]) for case in CASES)
    with pytest.raises(settings.UsageError, match="SBUF_BYTES must be at least 16384 .* not 8192"):
        report_of("timing", "PRESET=nano")


@pytest.mark.slow
def test_registers_between_those_who_wait_cost_what_the_formulas_say():
    """The formulas also hold with the pipeline depths of a board, where some units are omitted."""
    passed("timing", "PRESET=tiny PORT_LATENCY=1")
    assert passed("timing", "PRESET=fpga").rows["left_out"] == 13


PACED = SHARED.with_overrides(vector_speed=40, scalar_speed=50, gpsimd_speed=50, gpsimd_start=150, least_interval=64)
"""NeuronCore-v2's clocks: a case takes its published cycles of 2.5, or in the scalar engine and GpSimd 2, cycles."""

_NARROW = {name: Access(format=BF16, address=1024 * place) for place, name in enumerate(("a", "b", "dst"))}
QUICK = {
    "tensor_tensor": (_NARROW, lambda n: n),
    "scalar_tensor_tensor": (_NARROW | {"op0": AluOp.SUBTRACT, "op1": AluOp.MULTIPLY}, lambda n: n),
    "tensor_reduce": (_NARROW, lambda n: n / 2),
    "memset": ({"dst": _NARROW["dst"], "s0": 0}, lambda n: max(64, n / 2)),
}
"""Cases with BF16 operands: their fields, and their published cycles."""


def _quick(case):
    fields, cost = QUICK[case.name]
    return replace(
        case,
        name=f"{case.name}, bf16",
        build=lambda elements, config: replace(case.build(elements, config), **fields),
        cost=cost,
    )


@pytest.mark.parametrize(("access", "short"), [(0, 64), (100, 128)])
def test_a_paced_engine_takes_the_published_cycles_of_its_own_clock(access, short):
    """Except RECIPROCAL and BN_AGGR, see docs/rates.md; results and searched values are up to 16 more steps.

    The static overhead passes within the minimum interval, so it adds to `short` elements that take at least that.
    """
    cases = [case for case in CASES if case.cost] + [_quick(case) for case in CASES if case.name in QUICK]
    machine = PACED.with_overrides(access_cycles=access)
    result = targets.execute(timing_job(machine, cases=cases, elements=(short, 512)), targets.Rtl())
    assert result.bit_exact
    found = measurements_of(result)
    assert len(found) == 2 * len(cases) and len(cases) > 25
    far = []
    for m in found:
        instruction = m.case.build(m.elements, machine)
        own = m.case.cost(m.elements) + access * (instruction.opcode not in GPSIMD)
        published = own * (2 if instruction.opcode in (*SCALAR_OPCODES, *GPSIMD) else 2.5)
        if instruction.opcode not in (Opcode.RECIPROCAL, Opcode.BN_AGGR):
            allowed = 17 + 0.04 * published
            far += [m.line() for cycles in m.measured["overlapped"] if not -1 < cycles - published < allowed]
        slack = 8 if is_slow(instruction) else 1
        assert all(abs(cycles - period(instruction, machine)) <= slack for cycles in m.measured["overlapped"]), m.line()
        assert m.as_expected, m.line()
    assert far == []


def test_a_deviation_from_the_published_cost_has_a_reason():
    for case in CASES:
        low, high = (case.elements(wanted, SHARED) for wanted in (1, 512))
        costs = [period(case.build(elements, SHARED), SHARED) for elements in (low, high)]
        same = case.cost is not None and costs == [case.cost(low), case.cost(high)]
        assert same or case.because, f"{case.name}: {formula(case, SHARED)} beside {case.published}"


def test_manual_has_the_table():
    assert cost_table() in (ROOT / "docs" / "vector_engine.md").read_text()


def test_bench_reports_the_formulas(monkeypatch, capsys):
    monkeypatch.setattr(bench, "CASES", CASES[:1])
    monkeypatch.setattr(bench, "timing_job", partial(timing_job, elements=(8,)))
    assert passed("timing").rows["formulas"] == [{"instruction": "tensor_copy", "cycles": "max(4, N)"}]
    assert "tensor_copy" in capsys.readouterr().out
