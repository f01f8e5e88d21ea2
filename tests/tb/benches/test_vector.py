# amaranth: UnusedElaboratable=no

"""Random programs of the vector engine, alone and beside the scalar engine: every byte of both memories is golden's."""

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import FORMATS
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, Opcode
from neuroncore_rtl.tb.benches import instructions as bench
from neuroncore_rtl.tb.benches.vector import BENCH
from neuroncore_rtl.tb.check.execution import work_of
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.harness.run import run
from neuroncore_rtl.tb.sim.simulation import SimulationFailed
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_program
from tests.tb.benches.instructions import BOTH, IMAGE, SHARED, broken, check, smallest

VECTOR = tuple(sorted(VECTOR_OPCODES))

QUICK = Choices(opcodes=VECTOR, slow=False)


@pytest.mark.parametrize("opcode", VECTOR, ids=lambda opcode: opcode.name.lower())
def test_every_operation_is_golden(opcode):
    program, *_ = check(BOTH, 40, Choices(opcodes=(opcode,)), stall=0, seed=int(opcode))
    assert {instruction.opcode for instruction in program.instructions} == {opcode}


@pytest.mark.parametrize("fmt", FORMATS.values())
def test_every_format_is_golden(fmt):
    check(BOTH, 60, Choices(opcodes=VECTOR, formats=(fmt,)), stall=0, seed=100 + fmt.code)


@pytest.mark.parametrize(("stall", "seed"), ((0, 1), (60, 2), (128, 3), (220, 4)))
def test_programs_of_both_engines_are_golden_under_stalls(stall, seed):
    """They share tensors, so that each waits for the other."""
    program, outcome, _ = check(BOTH, 250, Choices(related=0.6), stall=stall, seed=seed)
    waits = sum(record.vector > 0 for record in program.records), sum(record.scalar > 0 for record in program.records)
    overlapping = sum(instruction.overlap for instruction in program.instructions)
    print(f"{waits} instructions wait for the vector and the scalar engine, {overlapping} overlap")
    assert min(waits) > 0
    assert 0 < overlapping < 250
    counted = [outcome.parts[engine].counters for engine in ("vector", "scalar")]
    if stall:
        assert all(counters["wait_sbuf"] > 0 and counters["wait_write"] > 0 for counters in counted)


def test_partitions_to_the_last_byte_are_reached():
    """With all of SBUF in use tensors lie at its end, too."""
    program, *_ = check(BOTH, 200, Choices(related=0.8), stall=30, seed=11, size=192 * 1024)
    assert program.sbuf.shape == (4, 192 * 1024)


def test_stalls_change_the_cycles_and_no_bit():
    program = random_program(np.random.default_rng(21), SHARED, 60, Choices(), bytes_per_partition=1 << 14)
    results, cycles = set(), []
    for stall, seed in ((0, 1), (60, 1), (200, 1), (200, 2)):
        outcome = run(BOTH, work_of(program, stall=stall, seed=seed))
        results.add(b"".join(memory.tobytes() for memory in outcome.memories.values()))
        cycles.append(outcome.cycles)
    print(f"{cycles} cycles")
    assert len(results) == 1
    assert cycles[0] < cycles[1] < cycles[2] and cycles[2] != cycles[3]


def test_counters_count():
    program, outcome, _ = check(BOTH, 40, Choices(opcodes=(Opcode.TENSOR_COPY,)), stall=0, seed=5)
    counters = outcome.parts["vector"].counters
    assert counters["instructions"] == 40
    assert counters["elements"] == sum(int(np.prod(instruction.shape)) for instruction in program.instructions)
    assert counters["wait_sbuf"] == counters["wait_psum"] == 0
    assert counters["elements"] <= counters["busy"] <= outcome.cycles + 1
    assert set(outcome.parts["scalar"].counters.values()) == {0}


def test_programs_on_icarus_are_golden():
    check(smallest("vector"), 40, Choices(opcodes=VECTOR), stall=60, seed=7, size=IMAGE, sim="icarus")


FAULTS = {
    "partition 1 is never written": {
        "ports": {"write__enable": "enable"},
        "body": "wire [1:0] enable; assign write__enable = enable & 1;",
    },
    "whole words are written": {"ports": {"write__mask": ""}, "body": "assign write__mask = 4'hf;"},
    "writes to PSUM go to SBUF": {"ports": {"write__storage": ""}, "body": "assign write__storage = 0;"},
    "the last place of every byte is wrong once in 8 writes": {
        "ports": {"write__data": "data"},
        "body": "wire [63:0] data; assign write__data = data ^ {8{{7'd0, data[3:1] == 3'd5}}};",
    },
    "SBUF is taken to be ready always": {"ports": {"sbuf__ready": "1'b1"}},
    "writes are taken to be ready always": {"ports": {"write__ready": "1'b1"}},
}  # fmt: skip
"""Faults that leave wrong bytes, or writes where there is nothing."""

SILENT = {
    "retires nothing": ({"ports": {"retired": ""}, "body": "assign retired = 0;"}, "retired 0 instructions, not 3"),
    "takes no instruction": (
        {"ports": {"instructions__ready": ""}, "body": "assign instructions__ready = 0;"},
        "did not finish",
    ),
    "is always busy": ({"ports": {"busy": ""}, "body": "assign busy = 1;"}, "did not finish"),
}
"""Faults after which nothing comes, or no end, and what is said of them."""


def test_sound_engine_in_a_shell_passes():
    """Else the faults below would prove nothing."""
    assert not broken("vector", {"ports": {"busy": "busy"}}, QUICK, 25).places


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_bytes_are_noticed(fault):
    differences = broken("vector", FAULTS[fault], QUICK, 25)
    assert 0 < len(differences.places) < differences.compared


@pytest.mark.parametrize("fault", SILENT)
def test_silent_engine_is_reported_and_nothing_hangs(fault):
    shell, message = SILENT[fault]
    with pytest.raises(SimulationFailed, match=message):
        broken("vector", shell, Choices(opcodes=(Opcode.TENSOR_COPY,), elements=4), 3)


# The bench


@pytest.mark.parametrize("engine", ("vector", "activation"))
def test_waveform_shows_opcodes_and_phases_as_words(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "waveform", lambda test: tmp_path / f"{test}.vcd")
    assignments = ["WAVES=1", "COUNT=2", "N=4", "SIM=icarus", "ROWS=2", "COLUMNS=2"]
    settings = bench_named(engine).settings(assignments)
    opcodes = [Opcode.TENSOR_COPY] if engine == "vector" else [Opcode.ACTIVATE]
    report, *_ = bench.run_instructions(engine, "all", settings, opcodes)
    assert report.problems == []
    text = (tmp_path / f"{engine}.gtkw").read_text()
    name = "vector" if engine == "vector" else "scalar"
    assert all(f"-{name}: {group}\n" in text for group in ("commands", "steps", "results", "counters"))
    words = tmp_path / "elementwise.step.Phase.words"
    assert str(words) in text
    assert "LOAD_S0" in words.read_text()
    assert opcodes[0].name in (tmp_path / "elementwise.instruction.Opcode.words").read_text()


def test_bench_reports_what_it_compared(monkeypatch, capsys):
    monkeypatch.setattr(bench, "ElementwiseDevice", shared)
    report = BENCH.run(BENCH.settings(["COUNT=10", "OP=tensor_tensor", "DTYPE=bf16", "SEED=3", "N=6"]))
    assert report.problems == []
    assert report.exit_status == 0
    assert report.compared == 4 * (192 + 16) * 1024
    assert report.extra["changed"] > 0
    assert report.extra["instructions"] == {"tensor_tensor": 10}
    assert report.cycles >= report.ideal_cycles > 0


def shared(config, engines):
    """Return the device that all tests share, in the place of one with the bench's engine alone."""
    return BOTH


def test_bench_prints_what_differs_and_fails(monkeypatch, capsys):
    right = bench.expected_memories

    def wrong(instructions, sbuf, psum, config):
        memories = right(instructions, sbuf, psum, config)
        memories[0][2, 3] ^= 1
        return memories

    monkeypatch.setattr(bench, "ElementwiseDevice", shared)
    monkeypatch.setattr(bench, "expected_memories", wrong)
    report = BENCH.run(BENCH.settings(["COUNT=3", "OP=iota"]))
    assert report.exit_status == 1
    assert report.mismatches == 1
    assert "SBUF partition 2 byte 3: word " in capsys.readouterr().out
