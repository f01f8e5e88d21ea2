"""`make oracle` on small handwritten files in the suites' formats."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import execute_lists as golden_run
from neuroncore_rtl.run.harness.links.collective import CollectiveWork
from neuroncore_rtl.run.harness.riscv import CpuDevice
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.elaboration import CPU
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.tb.cli import registry
from neuroncore_rtl.tb.stimulus import riscv_encoding, scalar_suites
from neuroncore_rtl.tb.stimulus.riscv_programs import TOHOST
from neuroncore_rtl.tb.tests.oracle import command, programs, reductions, scalars, units
from tests.hdl.arith.units import faulty_wire
from tests.hdl.tensor.engines import faulty
from tests.run.harness.faulty_hbm import FaultyHbm
from tests.tb.elf import elf
from tests.tb.tests.broken_engines import ENGINES, Fault, broken_engines

[TEST] = [one for one in registry.COMMANDS if one.name == "oracle"]

SAMPLE = """\
b32* =0 +1.000001P0 +1.000001P0 -> +1.000002P0 x
b32* =0 +1.7FFFFFP127 +1.000000P1 -> +Inf xo
b32* =0 +1.000000P-126 +1.000000P-2 -> +0.200000P-126
b32*+ =0 +1.000000P0 -1.002000P3 +1.000000P-126 -> -1.002000P3 x
b32*+ =0 +1.000001P0 +1.000000P0 +Zero -> +1.000001P0
b32/ =0 +1.000000P0 +Zero -> +Inf z
"""


def settings(**given):
    return TEST.settings(SIM="icarus", **given)


def fpgen_report(directory, text=SAMPLE):
    (directory / "sample.fptest").write_text(text)
    return command.run_suite(settings(SUITE="fpgen", FROM=str(directory)))


def test_every_suite_is_one_of_the_command_and_its_operations_have_units():
    assert registry.SUITES == tuple(command.SUITES)
    read = scalar_suites.FPGEN_OPERATIONS | scalar_suites.TESTFLOAT_FUNCTIONS
    assert units.ORACLE_OPERATIONS.keys() == {*read.values()}
    assert units.ORACLE_UNITS.keys() == {
        operation.unit for several in units.ORACLE_OPERATIONS.values() for operation in several
    }


def test_scalar_cases_pass(tmp_path):
    report = fpgen_report(tmp_path)
    assert report.problems == []
    cases = {row["operation"]: row["cases"] for row in report.rows["operations"]}
    assert cases == {"multiply, ALU": 3, "multiply-add, PE": 1, "multiply-add, FMA": 2, "divide, divider": 1}
    assert report.compared == 7 and report.rows["left_out"] == [{"why": "PE: factors beyond TF32", "cases": 1}]


def test_a_suite_that_expects_otherwise_fails_the_hardware_and_golden(tmp_path, capsys):
    report = fpgen_report(tmp_path, "b32* =0 +1.000000P-126 +1.000000P-2 -> +0.200001P-126\n")
    assert report.problems == [f"1 of 1 results of {of} are not those of fpgen" for of in ("the hardware", "golden")]
    said = "sample.fptest:1: multiply 00800000 3e800000: expected 00200001, RTL 00200000, golden 00200000"
    assert said in capsys.readouterr().out


def test_broken_hardware_is_noticed(tmp_path):
    (tmp_path / "sample.fptest").write_text("b32*+ =0 +1.7FFFFFP127 +1.000000P1 +Zero -> +Inf xo\n")
    reading = scalar_suites.read_fpgen([tmp_path / "sample.fptest"])
    broken = faulty_wire("overflow", "1'h0")
    report = scalars.report_of_scalars("fpgen", reading, settings(SUITE="fpgen"), mutate=broken)
    assert report.mismatches == 1
    assert report.problems[0] == "1 of 1 results of the hardware are not those of fpgen"


def test_broken_golden_is_noticed(tmp_path, monkeypatch):
    [divide] = units.ORACLE_OPERATIONS["divide"]
    broken = replace(divide, golden=lambda a, b: np.zeros_like(a))
    monkeypatch.setattr(scalars, "ORACLE_OPERATIONS", {**units.ORACLE_OPERATIONS, "divide": (broken,)})
    report = fpgen_report(tmp_path, SAMPLE.splitlines()[-1])
    assert report.problems[0] == "1 of 1 results of golden are not those of fpgen"


def test_nothing_to_compare_is_no_success(tmp_path):
    assert fpgen_report(tmp_path, "b32V =0 +1.000000P2 -> +1.000000P1\n").problems == ["nothing was compared"]


def test_own_tests_of_the_processor(tmp_path):
    (tmp_path / "rv32ui-p-right").write_bytes(elf())
    (tmp_path / "rv32um-p-wrong").write_bytes(elf(code=7))
    for name in ("rv64ui-p-a", "rv32ui-v-a", "rv32uf-p-a", "rv32mi-p-breakpoint", "notes"):
        (tmp_path / name).write_bytes(elf())
    (tmp_path / "rv32ui-p-right.dump").write_text("no ELF file")
    report = programs.run_tests(settings(SUITE="riscv-tests"), programs.elf_files(tmp_path))
    assert report.problems == ["rv32um-p-wrong: test 3 of the program failed"]
    found = {row["group"]: (row["passed"], row["failed"]) for row in report.rows["tests"]}
    assert found == {"rv32ui": (1, 0), "rv32um": (0, 1)}
    assert sum(row["files"] for row in report.rows["left_out"]) == 5 and report.compared > 10


def test_signatures(tmp_path):
    symbols = {"tohost": TOHOST, "begin_signature": LOCAL_BASE, "end_signature": LOCAL_BASE + 8}
    right = riscv_encoding.load_constant(5, TOHOST)
    (tmp_path / "I" / "references").mkdir(parents=True)
    for name, words in {"misalign-lh-01": right, "own": right, "short": [1, 2, 3], "wrong": [1, 2]}.items():
        (tmp_path / "I" / f"{name}.elf").write_bytes(elf(symbols=symbols))
        text = "".join(f"{word:08x}\n" for word in words)
        (tmp_path / "I" / "references" / f"{name}.reference_output").write_text(text)
    report = programs.run_architecture_tests(settings(SUITE="riscv-arch-test"), programs.signed_programs(tmp_path))
    assert report.problems[:2] == 2 * ["short.elf: its signature must have 3 words, not 2"]
    assert [problem.partition(", first in word 0: ")[0] for problem in report.problems[2:]] == [
        f"wrong.elf: 2 of 2 words of the signature of {who} differ from the reference"
        for who in ("the hardware", "golden")
    ]
    (row,) = report.rows["tests"]
    assert (row["group"], row["passed"], row["failed"], row["signature_words"]) == ("I", 1, 2, 7)
    assert report.rows["left_out"] == [{"why": "misaligned loads and stores", "files": 1}]


def test_broken_processor_is_noticed(tmp_path):
    (tmp_path / "rv32ui-p-right").write_bytes(elf())
    ports, body = {"trace_value": "told"}, "wire [31:0] told; assign trace_value = told ^ 32'd1;"
    broken = faulty(CpuDevice(memory_bytes=programs.MEMORY_BYTES), CPU, ports=ports, body=body)
    report = programs.run_tests(settings(SUITE="riscv-tests"), programs.elf_files(tmp_path), broken)
    assert report.mismatches == 1 and report.problems[0].startswith("rv32ui-p-right: golden disagrees: ")


LISTED = list(reductions.all_reduces(ENGINES.cores, 16))


@pytest.mark.parametrize("fault", (Fault.NONE, Fault.WRONG))
def test_all_reduces_give_what_was_known_before(fault):
    workload = reductions.workload_of(ENGINES.cores, LISTED, 3)
    assert {one.ranks for one in LISTED} == {2, 3, 4} and len({one.name for one in LISTED}) == 10
    behaviour = FaultyHbm(latency=8, fault=fault)
    work = CollectiveWork(lists=workload.lists, memories=workload.memories, delays=workload.delays, behaviour=behaviour)
    found = run_device(broken_engines(), work).memories["hbm"]
    assert (sum(reductions.wrong_results(one, 3, found) for one in LISTED) > 0) == (fault is Fault.WRONG)


def test_a_golden_all_reduce_in_another_order_gives_the_same_and_a_wrong_one_is_noticed():
    workload = reductions.workload_of(ENGINES.cores, LISTED, 3)
    golden_run(workload.lists, dict(enumerate(workload.memories)), ENGINES.cores)
    assert [one for one in LISTED if reductions.wrong_results(one, 3, workload.memories)] == []
    workload.memories[1, LISTED[5].dst] ^= 1
    assert [one for one in LISTED if reductions.wrong_results(one, 3, workload.memories)] == [LISTED[5]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "SUITE must be one of riscv-tests, riscv-arch-test, fpgen, testfloat, nccl-tests"),
        ({"SUITE": "riscv-tests"}, "FROM must be a folder with the ELF files of its isa/, .*; source: https://"),
        ({"SUITE": "riscv-arch-test", "FROM": "{}"}, "FROM must be a folder with its ELF files.*, not '{}'; source"),
        ({"SUITE": "fpgen", "FROM": "{}"}, "FROM must be a folder with IBM's files .*, not '{}'; source: .*tried"),
        ({"SUITE": "testfloat", "FROM": "{}/gone"}, "FROM must be the program testfloat_gen, .*, not '{}/gone'"),
        ({"SUITE": "nccl-tests", "FROM": "{}"}, "FROM must not be given with SUITE=nccl-tests"),
        ({"SUITE": "fpgen", "SEED": 2}, "SEED must be given with SUITE=testfloat or nccl-tests or jax, not fpgen"),
        ({"SUITE": "riscv-tests", "MAC_LATENCY": 4}, "MAC_LATENCY must be given with SUITE=fpgen or testfloat"),
    ],
)
def test_refusals(tmp_path, given, message):
    here = str(tmp_path)
    given = {name: value.format(here) if isinstance(value, str) else value for name, value in given.items()}
    with pytest.raises(UsageError, match=message.format(here)):
        command.run_suite(TEST.settings(**given))
