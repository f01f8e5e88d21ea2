"""Random vector and scalar programs: memories equal golden's."""

import numpy as np
import pytest

from neuroncore_rtl.run import elementwise, targets
from neuroncore_rtl.run.elementwise import work_of
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, Opcode
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program
from neuroncore_rtl.tb.tests.engines import instructions
from neuroncore_rtl.tb.tests.scenario import run_jobs
from tests.run.view.recordings import SaveFile
from tests.tb.reports import passed, report_of
from tests.tb.tests.instructions import BOTH, IMAGE, SHARED, check_case, run_broken, smallest

OPCODES = {"vector": tuple(sorted(VECTOR_OPCODES)), "scalar": (Opcode.ACTIVATE,)}


def test_every_operation_and_format_is_golden():
    program, *_ = check_case(BOTH, 600, Choices(opcodes=OPCODES["vector"]), stall=0, seed=100)
    assert {instruction.opcode for instruction in program.instructions} == VECTOR_OPCODES
    for place in ("a", "dst"):
        accesses = [getattr(instruction, place) for instruction in program.instructions]
        assert {access.format.name for access in accesses if access} == set(FORMATS)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", FORMATS.values())
def test_every_format_of_activations_is_golden(fmt):
    program, *_ = check_case(BOTH, 60, Choices(opcodes=OPCODES["scalar"], formats=(fmt,)), stall=0, seed=fmt.code)
    assert {instruction.a.format for instruction in program.instructions} == {fmt}


@pytest.mark.parametrize(("stall", "seed"), ((0, 1), (60, 2), (220, 4)))
def test_programs_of_both_engines_are_golden_under_stalls(stall, seed):
    program, outcome, _ = check_case(BOTH, 250, Choices(related=0.6), stall=stall, seed=seed)
    waits = [sum(getattr(record, engine) > 0 for record in program.records) for engine in OPCODES]
    overlapping = sum(instruction.overlap for instruction in program.instructions)
    assert min(waits) > 0
    assert 0 < overlapping < 250
    counted = [outcome.parts[engine].counters for engine in OPCODES]
    if stall:
        assert all(counters["wait_sbuf"] > 0 and counters["wait_write"] > 0 for counters in counted)


@pytest.mark.parametrize(("stall", "seed"), ((0, 1), (200, 3)))
def test_every_function_is_golden_under_stalls(stall, seed):
    program, outcome, _ = check_case(BOTH, 300, Choices(opcodes=OPCODES["scalar"]), stall=stall, seed=seed)
    assert {i.function for i in program.instructions} == {function.code for function in FUNCTIONS.values()}
    continued = sum(instruction.sum_continue for instruction in program.instructions)
    stored = sum(instruction.sum_store for instruction in program.instructions)
    assert continued > 10 and stored > 10
    assert outcome.parts["scalar"].counters["instructions"] == 300


def test_partitions_to_the_last_byte_are_reached():
    program, *_ = check_case(BOTH, 200, Choices(related=0.8), stall=30, seed=11, size=192 * 1024)
    assert program.sbuf.shape == (4, 192 * 1024)


def test_pauses_follow_the_seed_and_change_no_bit():
    program = random_elementwise_program(np.random.default_rng(21), SHARED, 30, Choices(), bytes_per_partition=1 << 14)
    one, other = (run_device(BOTH, work_of(program, stall=200, seed=seed)) for seed in (1, 2))
    assert one.cycles != other.cycles
    assert all((one.memories[name] == other.memories[name]).all() for name in ("sbuf", "psum"))


def test_counters_count():
    program, outcome, _ = check_case(BOTH, 40, Choices(opcodes=(Opcode.TENSOR_COPY,)), stall=0, seed=5)
    counters = outcome.parts["vector"].counters
    assert counters["instructions"] == 40
    assert counters["elements"] == sum(int(np.prod(instruction.shape)) for instruction in program.instructions)
    assert counters["wait_sbuf"] == counters["wait_psum"] == 0
    assert counters["elements"] <= counters["busy"] <= outcome.cycles + 1
    assert set(outcome.parts["scalar"].counters.values()) == {0}


@pytest.mark.parametrize(("engine", "count"), [("vector", 40), pytest.param("scalar", 25, marks=pytest.mark.slow)])
def test_programs_on_icarus_are_golden(engine, count):
    check_case(smallest(engine), count, Choices(opcodes=OPCODES[engine]), stall=60, seed=7, size=IMAGE, sim="icarus")


@pytest.mark.parametrize(("opcode", "seed"), [(Opcode.RECIPROCAL, 5), (Opcode.TENSOR_SCALAR, 2)])
def test_slow_first_instruction_on_icarus_is_golden(opcode, seed):
    """Registers of unknown value must not reach the control of slow units in a four-state simulator."""
    check_case(smallest("vector"), 2, Choices(opcodes=(opcode,)), stall=0, seed=seed, size=1 << 12, sim="icarus")


@pytest.mark.slow
def test_every_operation_on_128_lanes():
    device = ElementwiseDevice(config=PRESETS["full"])
    program, *_ = check_case(device, 90, Choices(related=0.5), stall=40, seed=128)
    assert len({instruction.opcode for instruction in program.instructions}) >= len(Opcode) - 2
    check_case(device, 6, Choices(opcodes=(Opcode.TRANSPOSE,)), stall=0, seed=129)


@pytest.mark.slow
@pytest.mark.parametrize("test", ["vector", "activation"])
def test_machine_without_optional_units_gets_programs_that_it_can_run(test):
    assert passed(test, "PRESET=nano COUNT=150").compared


@pytest.mark.parametrize("words", ("vector OP=max8", "activation FUNC=sin"))
def test_what_a_machine_has_no_unit_for_is_refused(words):
    test, chosen = words.split()
    with pytest.raises(UsageError, match=r"must select operations that .* have; these units are 0: (vector|scalar)_"):
        report_of(test, f"PRESET=nano {chosen}")


@pytest.mark.slow
def test_softmax_on_128_lanes():
    assert passed("softmax", "PRESET=full M=200 N=300").utilisation > 0.9


LAST_PLACE = {
    "ports": {"write__data": "data"},
    "body": "wire [63:0] data; assign write__data = data ^ {8{{7'd0, data[3:1] == 3'd5}}};",
}
"""Verilog of a fault: the last bit of every byte is wrong in one of 8 writes."""

FAULTS = {
    "partition 1 is never written": {
        "ports": {"write__enable": "enable"},
        "body": "wire [1:0] enable; assign write__enable = enable & 1;",
    },
    "whole words are written": {"ports": {"write__mask": ""}, "body": "assign write__mask = 4'hf;"},
    "writes to PSUM go to SBUF": {"ports": {"write__storage": ""}, "body": "assign write__storage = 0;"},
    "the last place is wrong at times": LAST_PLACE,
    "SBUF is taken to be ready always": {"ports": {"sbuf__ready": "1'b1"}},
    "writes are taken to be ready always": {"ports": {"write__ready": "1'b1"}},
    "scalar: results are written a lane further": {
        "ports": {"write__data": "data"},
        "body": "wire [63:0] data; assign write__data = {data[31:0], data[63:32]};",
    },
    "scalar: the last place is wrong at times": LAST_PLACE,
    "scalar: PSUM is taken to be ready always": {"ports": {"psum__ready": "1'b1"}},
}
"""Faults that cause wrong bytes or spurious writes; in the vector engine unless named."""

TYPICAL = ("partition 1 is never written", "the last place is wrong at times", "SBUF is taken to be ready always")
"""Faults tested in every run."""

QUICK = Choices(opcodes=OPCODES["vector"], slow=False)


@pytest.mark.parametrize("fault", [pytest.param(f, marks=[pytest.mark.slow] * (f not in TYPICAL)) for f in FAULTS])
def test_wrong_bytes_are_noticed(fault):
    scalar = "scalar", FAULTS[fault], Choices(opcodes=OPCODES["scalar"]), 40
    differences = run_broken(*scalar if fault.startswith("scalar") else ("vector", FAULTS[fault], QUICK, 25))
    assert 0 < len(differences.places) < differences.compared


@pytest.mark.parametrize(("port", "value"), [("instructions__ready", 0), ("busy", 1)])
def test_engine_without_progress_is_reported(port, value):
    offered = f"instructions__valid & {int(port != 'instructions__ready')}"
    shell = {"ports": {port: "", "instructions__valid": offered}, "body": f"assign {port} = {value};"}
    with pytest.raises(SimulationFailed, match="did not finish"):
        run_broken("vector", shell, Choices(opcodes=(Opcode.TENSOR_COPY,), elements=1), 1)


EXACT_TO_4_ULP = ("exp", "ln", "sqrt", "rsqrt", "reciprocal")


def test_errors_of_the_functions_are_within_their_bounds(shared_engines):
    result = targets.execute(instructions.error_job(list(FUNCTIONS.values()), SHARED, samples=400), targets.Rtl())
    assert result.bit_exact and result.compared > 4 * 400 * len(FUNCTIONS)
    found = instructions.errors_by_name(result)
    for name, largest in found.items():
        print(f"{name}: {largest}")
        assert largest.compared > 100
        assert min(largest.relative[0], largest.absolute[0]) <= 2**-20
    assert all(found[name].ulp[0] <= 4 for name in EXACT_TO_4_ULP)


def test_wrong_results_have_large_errors():
    z = np.array([0.5, 2.0], np.float32)
    right = np.exp(z.astype(np.float64)).astype(np.float32)
    assert instructions.reference_errors("exp", z, right).ulp[0] <= 0.5
    wrong = instructions.reference_errors("exp", z, np.nextafter(np.nextafter(right, np.float32(9)), np.float32(9)))
    assert 1.4 < wrong.ulp[0] < 2.6
    assert instructions.reference_errors("exp", z, right * 2).relative[0] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("test", "engine", "opcode"),
    [
        ("vector", "vector", Opcode.TENSOR_COPY),
        pytest.param("activation", "scalar", Opcode.ACTIVATE, marks=pytest.mark.slow),
    ],
)
def test_waveform_shows_opcodes_and_phases_as_words(test, engine, opcode, tmp_path):
    settings = command_named(test).settings("WAVES=1 COUNT=2 N=4 SIM=icarus ROWS=2 COLUMNS=2".split())
    with recording_in(tmp_path):
        jobs = instructions.instruction_jobs(settings, "all", [opcode])
        (result,) = run_jobs(jobs, targets.target_of(settings.values), lambda end: test)
    assert result.bit_exact and not result.failures
    save = SaveFile(tmp_path / "waves" / f"{test}.gtkw")
    assert {f"{engine}: {group}" for group in ("commands", "steps", "results", "counters")} < set(save.groups)
    assert "LOAD_S0" in save.words["elementwise.step.Phase"]
    assert opcode.name in save.words["elementwise.instruction.Opcode"]


def test_vector_reports_what_it_compared(shared_engines, capsys):
    report = passed("vector", "COUNT=10 OP=tensor_tensor DTYPE=bf16 SEED=3 N=6")
    assert report.compared == 4 * (192 + 16) * 1024
    assert report.rows["changed"] > 0
    assert report.rows["instructions"] == {"tensor_tensor": 10}
    assert report.cycles >= report.ideal_cycles > 0


def test_vector_prints_what_differs_and_fails(shared_engines, monkeypatch, capsys):
    right = elementwise.expected_memories

    def wrong(*arguments):
        memories = right(*arguments)
        memories[0][2, 3] ^= 1
        return memories

    monkeypatch.setattr(elementwise, "expected_memories", wrong)
    report = report_of("vector", "COUNT=3 OP=iota")
    assert (report.exit_status, report.mismatches) == (1, 1)
    assert "SBUF partition 2 byte 3: word " in capsys.readouterr().out


def test_activation_reports_results_and_errors(shared_engines):
    report = passed("activation", "FUNC=gelu COUNT=8 DTYPE=bf16 SEED=2")
    assert report.compared > 4 * (192 + 16) * 1024
    assert [name for name in report.rows if name.startswith("error_of_")] == ["error_of_gelu"]
    assert 0 < report.rows["error_of_gelu"]["ulp"] < 100
