"""`make oracle`: a third-party test suite against the hardware and golden."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.vectors import lanes_choice
from neuroncore_rtl.tb.stimulus.scalar_suites import PROGRAM, TESTFLOAT_FUNCTIONS, read_fpgen, read_testfloat
from neuroncore_rtl.tb.stimulus.stablehlo import interpreter_tests
from neuroncore_rtl.tb.tests.oracle.platform import platform_tests, run_platform
from neuroncore_rtl.tb.tests.oracle.programs import elf_files, run_architecture_tests, run_tests, signed_programs
from neuroncore_rtl.tb.tests.oracle.reductions import run_all_reduces
from neuroncore_rtl.tb.tests.oracle.scalars import report_of_scalars

__all__ = ["SUITES", "Suite", "run_oracle", "run_suite"]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A third-party test suite.

    `origin` is its address, `tried` the tested commit. `find` returns the tests in the path FROM, or None; a suite
    without `find` does not use FROM. `expects` describes FROM. `run` runs the tests. `takes` names those variables of
    this suite that other suites do not have.
    """

    origin: str
    tried: str
    expects: str = ""
    find: Callable[[Path], object] | None = None
    run: Callable[[Settings, object], Report]
    takes: tuple[str, ...] = ()


_LATENCIES = ("MAC_LATENCY", "VECTOR_LATENCY")


def _testfloat(path: Path) -> Path | None:
    if path.is_file() or any((path / f"{name}.txt").is_file() for name in TESTFLOAT_FUNCTIONS):
        return path
    return next((file for file in sorted(path.rglob(PROGRAM)) if file.is_file()), None)


def _models(settings: Settings, files: object) -> Report:
    from neuroncore_rtl.tb.tests.oracle.models import run_models

    return run_models(settings, files)


SUITES = {
    "riscv-tests": Suite(
        origin="https://github.com/riscv-software-src/riscv-tests",
        tried="34e6b6d",
        expects="a folder with the ELF files of its isa/, built as its README.md says for XLEN=32",
        find=elf_files,
        run=run_tests,
    ),
    "riscv-arch-test": Suite(
        origin="https://github.com/riscv-non-isa/riscv-arch-test",
        tried="6f7f47b, the end of old-framework-2.x",
        expects="a folder with its ELF files, built as its README.md says for rv32i_m and the target sail-riscv-c, and "
        "with its files *.reference_output",
        find=signed_programs,
        run=run_architecture_tests,
    ),
    "fpgen": Suite(
        origin="https://github.com/sergev/ieee754-test-suite",
        tried="12e883a",
        expects="a folder with IBM's files *.fptest, or one of them",
        find=lambda path: [path] if path.is_file() else sorted(path.rglob("*.fptest")),
        run=lambda settings, files: report_of_scalars("fpgen", read_fpgen(files), settings),
        takes=_LATENCIES,
    ),
    "testfloat": Suite(
        origin="https://github.com/ucb-bar/berkeley-testfloat-3",
        tried="a9c849f, with berkeley-softfloat-3 at a0c6494",
        expects=f"the program {PROGRAM}, a folder with it, or one with what it has printed, such as f32_add.txt",
        find=_testfloat,
        run=lambda settings, path: report_of_scalars("testfloat", read_testfloat(path, settings.seed), settings),
        takes=(*_LATENCIES, "SEED"),
    ),
    "nccl-tests": Suite(
        origin="https://github.com/NVIDIA/nccl-tests",
        tried="a0b82b2",
        run=lambda settings, nothing: run_all_reduces(settings),
        takes=("CHIPS", "BYTES", "SEED"),
    ),
    "stablehlo": Suite(
        origin="https://github.com/openxla/stablehlo",
        tried="3c9301c",
        expects="the checkout, or a folder with files *.mlir of its stablehlo/tests/interpret",
        find=interpreter_tests,
        run=_models,
    ),
    "jax": Suite(
        origin="https://github.com/jax-ml/jax",
        tried="jax-v0.10.2",
        expects="the checkout, or its folder tests",
        find=platform_tests,
        run=run_platform,
        takes=("CASES", "SEED"),
    ),
}


def run_suite(settings: Settings) -> Report:
    """Run the suite that the settings name; UsageError if SUITE, FROM or a variable does not fit it."""
    if settings.suite is None:
        raise UsageError(f"SUITE must be one of {', '.join(SUITES)}")
    suite, of_some = SUITES[settings.suite], {name for one in SUITES.values() for name in one.takes}
    for name in of_some & settings.non_defaults.keys() - set(suite.takes):
        takers = " or ".join(other for other, one in SUITES.items() if name in one.takes)
        raise UsageError(f"{name} must be given with SUITE={takers}, not {settings.suite}")
    own = {name: value for name, value in settings.values.items() if name in suite.takes or name not in of_some}
    report = suite.run(Settings(own), _find_tests(settings.suite, settings.values["FROM"]))
    return replace(report, test="oracle", label=settings.label, settings=own)


def _find_tests(name: str, given: str | None) -> object:
    suite = SUITES[name]
    if suite.find is None:
        if given is not None:
            raise UsageError(f"FROM must not be given with SUITE={name}: its inputs are computed here")
        return None
    path = None if given is None else Path(given).expanduser()
    found = suite.find(path) if path is not None and path.exists() else None
    if not found:
        instead = "" if path is None else f", not {display_path(path)!r}"
        raise UsageError(f"FROM must be {suite.expects}{instead}; source: {suite.origin} (tried: {suite.tried})")
    return found


def run_oracle(settings: Settings) -> int:
    """Run a suite, show and store the report, and return the exit status."""
    with lanes_choice(settings.lanes):
        report = run_suite(settings)
    report.show()
    print(f"record: {display_path(report.write())}")
    return report.exit_status
