"""TEST=riscv: a program on the controller's processor, every instruction compared with the golden hart."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES, PATIENCE, CpuDevice, CpuWork, Executable, read_executable
from neuroncore_rtl.run.job import DeviceJob
from neuroncore_rtl.run.report import Report, progress, recordings
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import RECORDED, SEED, Option, Settings, UsageError, integer, switch
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.tb.check.riscv_lockstep import LockstepComparison, compare
from neuroncore_rtl.tb.stimulus.riscv_programs import TOHOST, random_riscv_program
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["EXTERNAL_RATE", "TEST", "follow", "random_executable", "verdict"]

DEFAULT_COUNT = {"verilator": 10_000, "icarus": 1_000}
EXTERNAL_RATE = 64  # per 65,536 cycles


def random_executable(seed: int, items: int) -> Executable:
    """Return the random program of a seed (`tb.stimulus.riscv_programs`)."""
    program = random_riscv_program(np.random.default_rng(seed), items, memory_bytes=MEMORY_BYTES)
    return Executable(program.image, TOHOST)


def verdict(outcome: Outcome, limit: int) -> list[str]:
    """Return the reasons why a program did not pass, one sentence each."""
    if outcome.ending == Ending.STUCK:
        return [f"no instruction retired for {PATIENCE:,} cycles"]
    if outcome.exit_code is None:
        return [f"the program did not end within {limit:,} cycles"]
    if outcome.exit_code == 1:
        return []
    if outcome.exit_code & 1:
        return [f"test {outcome.exit_code >> 1} of the program failed"]
    return [f"the program must write 1 to tohost when it passes, not {outcome.exit_code:#x}"]


def follow(program: Executable, outcome: Outcome, *, memory: bool) -> tuple[LockstepComparison, list[str]]:
    """Return the comparison with the golden hart, and the problems other than the comparison's mismatch."""
    with progress(f"golden: {len(outcome.events):,} instructions"):
        comparison = compare(program, outcome.events)
    problems = []
    if comparison.mismatch:
        print(comparison.mismatch)
    elif outcome.exit_code is not None and not comparison.ended:
        problems.append("the trace ends before the program does")
    elif memory and comparison.memory != (found := outcome.memories["memory"].tobytes()):
        words = np.frombuffer(comparison.memory, "<u4") != np.frombuffer(found, "<u4")
        problems.append(f"{int(words.sum())} words of memory differ at the end")
    return comparison, problems


def _write_trace(outcome: Outcome, name: str) -> Path:
    path = recordings() / "traces" / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for entry in outcome.events:
            did = f"trap {entry.cause:08x}" if entry.trap else f"x{entry.rd} {entry.value:08x}" if entry.rd else "-"
            file.write(f"{entry.pc:08x} {entry.instruction:08x} {did}\n")
    return path


def _random(settings: Settings) -> int | None:
    return None if settings.elf is not None else settings.count or DEFAULT_COUNT[settings.sim]


def _name(settings: Settings) -> str:
    count = _random(settings)
    return settings.elf.name if count is None else f"random-{count}-seed{settings.seed}"


def _jobs(settings: Settings) -> Jobs:
    count = _random(settings)
    if count is not None and not settings.lockstep:
        raise UsageError("LOCKSTEP=0 must be given with ELF: a random program does not report a result")
    random = count is not None
    program = random_executable(settings.seed, count) if random else read_executable(settings.elf, MEMORY_BYTES)
    given = {"limit": settings.limit, "stall": settings.stall, "seed": settings.seed}
    noted = {"trace": bool(settings.lockstep or settings.trace), "memory": random}
    work = CpuWork(program=program, external=EXTERNAL_RATE if random else 0, **given, **noted)
    yield DeviceJob(on=CpuDevice(), load=work, doing=f"running {_name(settings)}", name="")


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    (result,), name, random = results, _name(settings), settings.elf is None
    outcome, program = result.outcome, result.job.load.program
    failures = verdict(outcome, settings.limit)
    if failures and program.compressed:
        failures.append(
            f"{name} may have compressed instructions, which the processor does not support: use -march=rv32im"
        )
    compared, mismatches, lockstep = 0, 0, {}
    if settings.lockstep:
        comparison, problems = follow(program, outcome, memory=random)
        failures += problems
        compared, mismatches = comparison.compared, int(comparison.mismatch is not None)
        lockstep = {"traps": comparison.traps, "interrupts": comparison.interrupts}
    instructions = outcome.counters["instructions"]
    program_settings = {"ELF": None if random else str(settings.elf), "COUNT": _random(settings)}
    return Report(
        settings=settings.values | program_settings,
        compared=compared,
        mismatches=mismatches,
        judge=None if settings.lockstep else "the program",
        rows={
            "program": name,
            "instructions": instructions,
            "cycles_per_instruction": outcome.cycles / instructions if instructions else None,
            **lockstep,
            "simulated_cycles_per_second": int(outcome.cycles / outcome.seconds),
            **({"console": outcome.console.rstrip("\n")} if outcome.console else {}),
            **({"trace": display_path(_write_trace(outcome, settings.file_name("riscv")))} if settings.trace else {}),
            **result.files,
        },
        failures=failures,
    )


_COUNTS = ", ".join(f"{count:,} with SIM={sim}" for sim, count in DEFAULT_COUNT.items())
_COUNT = f"parts of the random program, of one to nine instructions; default {_COUNTS}"
_ELF = "program with the symbol tohost, to which it writes 1 if it passes; default: a random program"

TEST = Scenario(
    name="riscv",
    summary="a program on the controller's RISC-V processor, every instruction against the golden hart",
    options=(
        Option(name="ELF", type=Path, default=None, help=_ELF),
        integer("COUNT", None, _COUNT, 1, 50_000),
        SEED,
        integer("STALL", 0, "random cycles per 256 in which each bus stalls", 0, 192),
        integer("LIMIT", 10_000_000, "cycle limit", 1, 10**12),
        switch("LOCKSTEP", 1, "0 skips the comparison with the golden hart: the program of ELF reports its result"),
        switch("TRACE", 0, "1 writes the retired instructions, one per line"),
        *RECORDED,
    ),
    jobs=_jobs,
    rows=_rows,
)
