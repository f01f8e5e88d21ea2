# amaranth: UnusedElaboratable=no

"""Random programs of the scalar engine: every byte is golden's, and the errors of the functions are small."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.benches import activation as bench
from neuroncore_rtl.tb.benches import instructions as random_bench
from neuroncore_rtl.tb.benches.activation import BENCH, measure_errors
from neuroncore_rtl.tb.check.references import errors
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from tests.tb.benches.instructions import BOTH, IMAGE, SHARED, broken, check, smallest

ACTIVATE = (Opcode.ACTIVATE,)

EXACT_TO_4_ULP = ("exp", "ln", "sqrt", "rsqrt", "reciprocal")


@pytest.fixture
def shared(monkeypatch):
    """Let the benches run on the device that all tests share."""
    for module in (bench, random_bench):
        monkeypatch.setattr(module, "ElementwiseDevice", lambda config, engines: BOTH)


@pytest.mark.parametrize("fmt", FORMATS.values())
def test_every_format_is_golden(fmt):
    choices = Choices(opcodes=ACTIVATE, formats=(fmt,))
    program, *_ = check(BOTH, 60, choices, stall=0, seed=fmt.code)
    assert {instruction.a.format for instruction in program.instructions} == {fmt}


@pytest.mark.parametrize(("stall", "seed"), ((0, 1), (60, 2), (200, 3)))
def test_every_function_is_golden_under_stalls(stall, seed):
    program, outcome, _ = check(BOTH, 300, Choices(opcodes=ACTIVATE), stall=stall, seed=seed)
    assert {i.function for i in program.instructions} == {function.code for function in FUNCTIONS.values()}
    continued = sum(instruction.sum_continue for instruction in program.instructions)
    stored = sum(instruction.sum_store for instruction in program.instructions)
    print(f"{continued} running sums go on, {stored} are stored")
    assert continued > 10 and stored > 10
    assert outcome.parts["scalar"].counters["instructions"] == 300


def test_programs_on_icarus_are_golden():
    check(smallest("scalar"), 25, Choices(opcodes=ACTIVATE), stall=60, seed=7, size=IMAGE, sim="icarus")


def test_errors_of_the_functions_are_within_their_bounds(shared):
    """A first look at RTL alone; the equations are measured more closely elsewhere."""
    found, compared, differ = measure_errors(list(FUNCTIONS.values()), SHARED, samples=400)
    assert compared == 400 * len(FUNCTIONS)
    assert differ == 0
    for name, largest in found.items():
        print(f"{name}: {largest}")
        assert largest.compared > 100
    assert all(found[name].ulp[0] <= 4 for name in EXACT_TO_4_ULP)
    assert all(min(found[name].relative[0], found[name].absolute[0]) <= 2**-20 for name in found)


def test_wrong_results_have_large_errors():
    """The measure must be able to say so."""
    z = np.array([0.5, 2.0], np.float32)
    right = np.exp(z.astype(np.float64)).astype(np.float32)
    assert errors("exp", z, right, 0.1).ulp[0] <= 0.5
    wrong = errors("exp", z, np.nextafter(np.nextafter(right, np.float32(9)), np.float32(9)), 0.1)
    assert 1.4 < wrong.ulp[0] < 2.6
    assert errors("exp", z, right * 2, 0.1).relative[0] == pytest.approx(1, abs=1e-6)


SHELLS = {
    "results are written a lane further": {
        "ports": {"write__data": "data"},
        "body": "wire [63:0] data; assign write__data = {data[31:0], data[63:32]};",
    },
    "the last place of every byte is wrong once in 8 writes": {
        "ports": {"write__data": "data"},
        "body": "wire [63:0] data; assign write__data = data ^ {8{{7'd0, data[3:1] == 3'd5}}};",
    },
    "PSUM is taken to be ready always": {"ports": {"psum__ready": "1'b1"}},
}  # fmt: skip


@pytest.mark.parametrize("fault", SHELLS)
def test_wrong_bytes_are_noticed(fault):
    differences = broken("scalar", SHELLS[fault], Choices(opcodes=ACTIVATE), 15)
    assert 0 < len(differences.places) < differences.compared


def test_bench_reports_results_and_errors(shared):
    report = BENCH.run(BENCH.settings(["FUNC=gelu", "COUNT=8", "DTYPE=bf16", "SEED=2"]))
    assert report.problems == []
    assert report.compared > 4 * (192 + 16) * 1024
    assert [name for name in report.extra if name.startswith("error_of_")] == ["error_of_gelu"]
    assert "ulp at" in report.extra["error_of_gelu"]


def test_bench_fails_if_a_result_differs(shared, monkeypatch):
    right = bench.expected_memories

    def wrong(instructions, *memories):
        return right([replace(instruction, function=0) for instruction in instructions], *memories)

    monkeypatch.setattr(bench, "expected_memories", wrong)
    report = BENCH.run(BENCH.settings(["FUNC=tanh", "COUNT=2"]))
    assert report.exit_status == 1
    assert report.mismatches > 0
