"""Programs of RISC-V test suites, which check themselves or write a signature; golden checks every instruction."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroncore_rtl.kernels.control.elf import read_elf
from neuroncore_rtl.run.harness.riscv import CpuDevice, CpuWork, read_executable
from neuroncore_rtl.run.harness.run import Device, run_device
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.tb.tests.core.riscv import follow, verdict

__all__ = ["elf_files", "run_architecture_tests", "run_tests", "signed_programs"]

LIMIT = 2_000_000  # the suites' programs take some thousands
EXTENSIONS = ("I", "M", "Zifencei", "privilege")  # folders of riscv-arch-test

OTHERWISE = {
    r"misalign-(lh|lhu|lw|sh|sw)-\d+": "misaligned loads and stores",
    r"misalign-(b\w+|jal)-\d+|misalign2-jalr-\d+": "jumps between words",
}
"""Features, by pattern of test names, for which a reference signature assumes a machine of another legal behaviour."""

MEMORY_BYTES = 2 << 20  # a test of JAL reaches one MiB in both directions
_TEST = re.compile(r"(rv\d+)([a-z]+)-([a-z]+)-(\S+)")
GROUPS = ("rv32ui", "rv32um", "rv32mi")  # base instructions, multiplication and division, machine mode

NOT_THERE = {"rv32mi-p-breakpoint": "trigger registers", "rv32mi-p-pmpaddr": "memory protection"}
"""Tests of optional features that the processor does not have."""


@dataclass(frozen=True)
class Test:
    """A program of a suite; reference: words of its signature, None if it checks itself."""

    path: Path
    group: str
    reference: np.ndarray | None = None


def elf_files(path: Path) -> list[Path]:
    """Return all ELF files in a folder, in order."""

    def is_elf(file: Path) -> bool:
        with file.open("rb") as opened:
            return opened.read(4) == b"\x7fELF"

    return [file for file in sorted(path.rglob("*")) if file.is_file() and is_elf(file)]


def run_tests(settings: Settings, files: Sequence[Path], device: Device | None = None) -> Report:
    """Run riscv-tests; `device` replaces the processor, so that tests can show that faults are detected."""
    left_out = Counter()
    return _report(settings, _tests(files, left_out), left_out, device)


def _tests(files: Sequence[Path], left_out: Counter) -> Iterator[Test]:
    for path in files:
        found = _TEST.fullmatch(path.name)
        if not found:
            left_out["not named as a test of instructions"] += 1
            continue
        machine, group, environment, _ = found.groups()
        if machine != "rv32":
            left_out[machine] += 1
        elif environment != "p":
            left_out[f"environment {environment}"] += 1
        elif machine + group not in GROUPS:
            left_out[f"{machine}{group}, no extension here"] += 1
        elif path.name in NOT_THERE:
            left_out[f"{path.name}: {NOT_THERE[path.name]}"] += 1
        else:
            yield Test(path, machine + group)


def run_architecture_tests(settings: Settings, found: Sequence[list[Path]]) -> Report:
    """Run riscv-arch-test; found: ELF files and references."""
    left_out = Counter()
    return _report(settings, _signed(*found, left_out), left_out)


def signed_programs(path: Path) -> tuple[list[Path], list[Path]] | None:
    """Return the ELF files of a folder and the reference signatures; None if either is missing."""
    programs, references = elf_files(path), sorted(path.rglob("*.reference_output"))
    return (programs, references) if programs and references else None


def _signed(programs: Sequence[Path], references: Sequence[Path], left_out: Counter) -> Iterator[Test]:
    """Yield a test for each program; its reference has the same name and the same extension's folder."""
    known = {
        (file.parent.parent.name, file.stem): file
        for file in references
        if not any(part.startswith(("rv64", "rv32e")) for part in file.parts)
    }
    for path in programs:
        file = known.get((path.parent.name, path.stem))
        if file is None:
            left_out["no reference signature"] += 1
        elif path.parent.name not in EXTENSIONS:
            left_out[f"{path.parent.name}, no extension here"] += 1
        elif why := next((why for name, why in OTHERWISE.items() if re.fullmatch(name, path.stem)), None):
            left_out[why] += 1
        else:
            words = np.array([int(line, 16) for line in file.read_text().split()], np.uint32)
            yield Test(path, path.parent.name, words)


def _report(settings: Settings, tests: Iterable[Test], left_out: Counter, device: Device | None = None) -> Report:
    device = device or CpuDevice(memory_bytes=MEMORY_BYTES)
    table, failures, compared, mismatches = defaultdict(Counter), [], 0, 0
    for test in tests:
        problems, events, differs = _run_test(test, device, settings)
        compared, mismatches = compared + events, mismatches + differs
        row = table[test.group]
        row.update(files=1, passed=not problems, failed=bool(problems), instructions=events)
        if test.reference is not None:
            row.update(signature_words=len(test.reference))
        failures += [f"{test.path.name}: {problem}" for problem in problems]
    return Report(
        compared=compared,
        mismatches=mismatches,
        rows={
            "tests": [{"group": group, **row} for group, row in table.items()],
            "left_out": [{"why": why, "files": count} for why, count in left_out.items()],
        },
        failures=tuple(failures),
    )


def _run_test(test: Test, device: Device, settings: Settings) -> tuple[list[str], int, int]:
    """Return the reasons why a test fails, the number of compared instructions, and 1 if one differs from golden."""
    program = read_executable(test.path, MEMORY_BYTES)
    work = CpuWork(program=program, limit=LIMIT, trace=True, memory=test.reference is not None)
    outcome = run_device(device, work, sim=settings.sim, doing=f"running {test.path.name}")
    problems = verdict(outcome, LIMIT)
    comparison, wrong = follow(program, outcome, memory=False)
    problems += wrong
    if comparison.mismatch:
        problems.append(f"golden disagrees: {comparison.mismatch}")
    if test.reference is not None:
        for who, memory in (("the hardware", outcome.memories["memory"].tobytes()), ("golden", comparison.memory)):
            problems += _signature_problems(test, memory, who)
    return problems, comparison.compared, int(comparison.mismatch is not None)


def _signature_problems(test: Test, memory: bytes, who: str) -> list[str]:
    symbols = read_elf(test.path, MEMORY_BYTES).symbols
    missing = {"begin_signature", "end_signature"} - symbols.keys()
    if missing:
        return [f"it must have the symbols {' and '.join(sorted(missing))}"]
    first, end = (symbols[name] - LOCAL_BASE for name in ("begin_signature", "end_signature"))
    words = np.frombuffer(memory[first:end], "<u4")
    if len(words) != len(test.reference):
        return [f"its signature must have {len(test.reference)} words, not {len(words)}"]
    differs = np.flatnonzero(words != test.reference)
    if not len(differs):
        return []
    at = differs[0]
    return [
        f"{len(differs)} of {len(words)} words of the signature of {who} differ from the reference, first in word "
        f"{at}: {words[at]:08x}, not {test.reference[at]:08x}"
    ]
