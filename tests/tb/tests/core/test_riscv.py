"""The controller's processor against the golden hart."""

from functools import cache

import numpy as np
import pytest

from neuroncore_rtl.run.harness import riscv
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.elaboration import CPU
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.tb.check.riscv_lockstep import compare
from neuroncore_rtl.tb.stimulus.riscv_encoding import i_type, j_type, load_constant, r_type, s_type
from neuroncore_rtl.tb.stimulus.riscv_programs import TOHOST
from neuroncore_rtl.tb.tests.core.riscv import EXTERNAL_RATE, random_executable
from tests.hdl.tensor.engines import faulty
from tests.kernels.control.programs import PROGRAMS, executable
from tests.tb.elf import elf, image
from tests.tb.reports import report_of


def follow(program, *, code, sim="verilator", **options):
    outcome = run_device(riscv.CpuDevice(), riscv.CpuWork(program=program, trace=True, **options), sim=sim)
    comparison = compare(program, outcome.events)
    assert comparison.mismatch is None and comparison.ended
    assert outcome.exit_code == code
    assert "memory" not in options or outcome.memories["memory"].tobytes() == comparison.memory
    return outcome, comparison


@pytest.mark.parametrize(("seed", "stall"), ((1, 0), (2, 25), (3, 100), (4, 192)))
def test_random_programs_agree_with_golden(seed, stall):
    program = random_executable(seed, 4000)
    _, comparison = follow(program, code=1, stall=stall, seed=seed, external=EXTERNAL_RATE, memory=True)
    assert comparison.compared > 4000 and comparison.traps > 200 and comparison.interrupts > 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_own_programs_pass(name):
    """The programs' checks were derived from the specification, independently of golden."""
    outcome, _ = follow(executable(name), code=PROGRAMS[name], stall=120)
    assert outcome.console == ("hello 0 4294967295 00c0ffee\n" if name == "library" else "")


def test_icarus_agrees():
    follow(executable("traps"), code=0, sim="icarus", stall=60)
    follow(random_executable(5, 150), code=1, sim="icarus", stall=30, external=EXTERNAL_RATE, memory=True)


def test_one_instruction_a_cycle():
    """Straight-line code retires one instruction per cycle; the final loop needs two for its jump."""
    body = [r_type(0x33, 1 + n % 5, 0, 1 + (n + 4) % 5, 6, 0) for n in range(500)]
    end = [*load_constant(7, TOHOST), i_type(0x13, 8, 0, 0, 1), s_type(0x23, 2, 7, 8, 0), j_type(0x6F, 0, 0)]
    zero = [i_type(0x13, n, 0, 0, 3) for n in range(1, 9)]
    outcome, _ = follow(riscv.Executable(image(*zero, *body, *end), TOHOST), code=1)
    assert outcome.cycles - outcome.counters["instructions"] < 12


SPOILT_INPUTS = {
    "fetch__result": "fetch__result & ~32'h100000",
    "timer_interrupt": "1'b1",
    "external_interrupt": "1'b0",
    "\\time ": "\\time + 1000",
}
"""Faults of inputs of the Cpu."""

SPOILT_OUTPUTS = {
    "trace_value": (32, "sound_trace_value ^ {31'd0, sound_trace_value == 3}"),
    "trace_pc": (32, "sound_trace_pc & ~32'h100"),
    "trace_trap": (1, "1'b0"),
    "trace_valid": (1, "1'b0"),
    "data__mask": (4, "sound_data__mask == 15 ? 4'd7 : sound_data__mask"),
}
"""Faults of outputs, with their width."""

FAULTS = (None, *SPOILT_INPUTS, *SPOILT_OUTPUTS)


@cache
def broken_cpu():
    body = 'integer fault; initial if (!$value$plusargs("seed=%d", fault)) fault = 0;\n'
    ports = {}
    for number, name in enumerate(FAULTS):
        if name in SPOILT_INPUTS:
            ports[name.strip()] = f"fault == {number} ? {SPOILT_INPUTS[name]} : {name}"
        elif name:
            width, spoilt = SPOILT_OUTPUTS[name]
            ports[name] = f"sound_{name}"
            body += f"wire [{width - 1}:0] sound_{name}; assign {name} = fault == {number} ? {spoilt} : sound_{name};\n"
    return faulty(riscv.CpuDevice(), CPU, ports=ports, body=body)


@cache
def broken_program():
    return random_executable(6, 2000)


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_cpu_is_noticed(fault):
    work = riscv.CpuWork(program=broken_program(), seed=FAULTS.index(fault), external=500, limit=200_000, trace=True)
    comparison = compare(broken_program(), run_device(broken_cpu(), work).events)
    print(comparison.mismatch)
    assert (comparison.mismatch is None and comparison.ended) == (fault is None)
    assert fault or comparison.interrupts > 0


def test_silent_cpu_fails_the_bench(monkeypatch):
    mute = {"trace_valid": "", "fetch__response": "1'b0"}
    device = faulty(riscv.CpuDevice(), CPU, ports=mute, body="assign trace_valid = 0;")
    monkeypatch.setattr("neuroncore_rtl.tb.tests.core.riscv.CpuDevice", lambda: device)
    monkeypatch.setattr("neuroncore_rtl.run.harness.riscv.PATIENCE", 500)
    report = report_of("riscv", "COUNT=5 SIM=icarus")
    assert report.exit_status == 1
    assert report.problems[0].startswith("no instruction retired for")


def test_bench_runs_random_programs():
    report = report_of("riscv", "COUNT=200 STALL=40")
    assert report.exit_status == 0 and report.cycles > report.rows["instructions"] > 400
    assert report.compared > 400 and report.bit_exact


def test_a_random_program_is_not_run_without_comparison():
    with pytest.raises(UsageError, match="LOCKSTEP=0 must be given with ELF: a random program does not report"):
        report_of("riscv", "COUNT=200 LOCKSTEP=0")


def test_without_comparison_a_program_judges_itself_and_the_report_says_so(tmp_path, capsys):
    path = tmp_path / "program.elf"
    path.write_bytes(elf())
    report = report_of("riscv", f"ELF={path} LOCKSTEP=0")
    assert report.exit_status == 0 and not report.compared and not report.bit_exact
    report.show()
    assert "nothing with the golden model: passed as the program says" in capsys.readouterr().out


def test_bench_fails_where_a_program_does_not_end():
    report = report_of("riscv", "COUNT=200 LIMIT=100")
    assert (report.exit_status, report.problems) == (1, ["the program did not end within 100 cycles"])


@pytest.mark.parametrize(
    ("code", "problem"),
    [(15, "test 7 of the program failed"), (6, "the program must write 1 to tohost when it passes, not 0x6")],
)
def test_bench_says_what_an_elf_file_reports(tmp_path, code, problem):
    path = tmp_path / "program.elf"
    path.write_bytes(elf(code=code))
    report = report_of("riscv", f"ELF={path}")
    assert report.problems == [problem]
    assert report.compared > 5 and report.mismatches == 0


def modifying(between):
    old, new = i_type(0x13, 9, 0, 0, 1), i_type(0x13, 9, 0, 0, 2)
    start = [*load_constant(5, new), *load_constant(6, LOCAL_BASE + 4 * 6)]
    end = [*load_constant(7, TOHOST), i_type(0x13, 8, 0, 0, 1), s_type(0x23, 2, 7, 8, 0), j_type(0x6F, 0, 0)]
    assert len(start) == 4
    return riscv.Executable(image(*start, s_type(0x23, 2, 6, 5, 0), between, old, *end), TOHOST), old, new


NOP, FENCE_I = i_type(0x13, 0, 0, 0, 0), i_type(0x0F, 0, 1, 0, 0)


def test_an_instruction_may_have_been_fetched_before_it_was_replaced_unless_fence_i_is_between():
    program, old, new = modifying(NOP)
    outcome, _ = follow(program, code=1)
    place = LOCAL_BASE + 4 * 6
    assert [entry.instruction for entry in outcome.events if entry.pc == place] == [old]
    fenced, *_ = modifying(FENCE_I)
    outcome_of_fenced, _ = follow(fenced, code=1)
    assert [entry.instruction for entry in outcome_of_fenced.events if entry.pc == place] == [new]
    # The first trace is illegal for the second program, which must not execute the replaced instruction.
    claimed = [entry._replace(instruction=FENCE_I) if entry.instruction == NOP else entry for entry in outcome.events]
    assert f"instruction {new:08x}" in compare(fenced, claimed).mismatch


def test_a_trace_is_read_from_its_file_as_often_as_it_is_asked_for(tmp_path):
    path = tmp_path / "trace"
    path.write_text("80000000 00000013 0 00000000 05 0000002a 00000007 1\n" * 3)
    trace = riscv.Trace(path)
    path.unlink()
    entry = riscv.TraceEntry(LOCAL_BASE, 0x13, 0, 0, 5, 42, 7, 1)
    assert len(trace) == 3 and [*trace] == [*trace] == [entry] * 3


def test_damaged_files_are_refused_whatever_is_damaged(tmp_path):
    whole, path = elf(), tmp_path / "program.elf"
    rng = np.random.default_rng(1)
    files = [whole[:size] for size in range(len(whole))]
    for _ in range(150):
        # Only headers and tables are damaged, because the program may have any contents.
        place = int(rng.choice([*range(84), *range(len(whole) - 160, len(whole))]))
        spoilt = bytearray(whole)
        spoilt[place] = rng.choice([0, 255, spoilt[place] ^ 1 << rng.integers(8)])
        files.append(bytes(spoilt))
    refused = 0
    for content in files:
        path.write_bytes(content)
        try:
            riscv.read_executable(path, riscv.MEMORY_BYTES)
        except UsageError as error:
            refused += 1
            assert "program.elf" in str(error)
    assert refused >= len(whole)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (elf()[:-1], "must hold its section headers, bytes .* it is damaged or cut short"),
        (elf()[:90], "must hold its section headers, bytes .*; it ends at 0x5a: it is damaged or cut short"),
        (b"#!/bin/sh\n", "ELF must be an ELF file, not"),
        (elf(bits=64), "must be for 32-bit little-endian RISC-V, not 64-bit little-endian EM_RISCV"),
        (elf(machine=40), "must be for 32-bit little-endian RISC-V, not 32-bit little-endian EM_ARM"),
        (elf(kind=1), "must be a linked executable"),
        (elf(entry=0x8000_0100), "must start at 0x80000000, not 0x80000100"),
        (elf(address=0x1000), "must lie in memory, 0x80000000 to 0x80100000, not at 0x1000"),
        (elf(symbols={"start": TOHOST}), "must have the symbol tohost"),
    ],
)
def test_unsuitable_files_are_refused(tmp_path, content, message):
    path = tmp_path / "program.elf"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as refusal:
        riscv.read_executable(path, riscv.MEMORY_BYTES)
    assert "program.elf" in str(refusal.value)
