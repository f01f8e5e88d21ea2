"""JAX's own tests, on the platform `neuron`: each case passes, is refused with a reason, or fails."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings, UsageError

__all__ = ["outcomes", "platform_tests", "run_platform"]

_FILES = "nn_test.py", "lax_test.py"
_PROCESS = "neuroncore_rtl.tb.tests.oracle.platform_cases"
_REFUSALS = "UNIMPLEMENTED: ", "RESOURCE_EXHAUSTED: ", "not supported on neuron", "not found for platform neuron"
_ENVIRONMENT = {
    "JAX_PLATFORMS": "neuron,cpu", "NEURON_PRESET": "full", "JAX_NUM_GENERATED_CASES": "1",
    "MALLOC_MMAP_THRESHOLD_": "1048576",  # an empty SBUF is then pages without memory, not 24 MiB of zeros a program
}  # fmt: skip
_SECONDS = 30
"""Seconds of a processor after which a case is interrupted."""
_WIDTH = 110
"""Characters of a reason."""


def platform_tests(path: Path) -> list[Path]:
    """Return the files of JAX's tests in a checkout or its folder of tests."""
    inner = path / "tests"
    files = [(inner if inner.is_dir() else path) / name for name in _FILES]
    return [file for file in files if file.is_file()]


def run_platform(settings: Settings, files: Sequence[Path]) -> Report:
    """Run a sample of the cases of each file."""
    if importlib.util.find_spec("absl") is None:
        raise UsageError("SUITE=jax needs the package of JAX's tests: pip install absl-py")
    table, reasons, failures = {}, Counter(), []
    for file in files:
        row = table[file.name] = Counter()
        for case, outcome, text in outcomes(file, settings.cases, settings.seed):
            row[outcome] += 1
            if outcome == "refused":
                reasons[text.partition(" (")[0][:_WIDTH]] += 1
            elif outcome in ("failed", "aborted"):
                failures.append(f"{file.name}: {case} {outcome}: {text}")
    names = "passed", "refused", "skipped", "too long", "failed", "aborted"
    return Report(
        compared=sum(row["passed"] for row in table.values()),
        rows={
            "cases": [{"file": name, **{one: row[one] for one in names}} for name, row in table.items()],
            "refused": [{"why": why, "cases": count} for why, count in reasons.most_common()],
        },
        failures=tuple(failures),
        judge="JAX's test",
    )


def _process(file: Path, *names: str) -> subprocess.Popen:
    command = [sys.executable, "-m", _PROCESS, str(file), str(_SECONDS), *names]
    environment = os.environ | _ENVIRONMENT
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def outcomes(file: Path, most: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield name, outcome and reason of each drawn case; the case during which a process ends is aborted."""
    listed, _ = _process(file).communicate()
    names = json.loads(listed)
    random.Random(seed).shuffle(names)
    left = names[: most or None]
    while left:
        with _process(file, *left) as process:
            assert process.stdout is not None
            for line in process.stdout:
                name, outcome, text = json.loads(line)
                lines = text.strip().splitlines() or [""]
                refusals = [line.partition(": ")[2] for line in lines if any(one in line for one in _REFUSALS)]
                if outcome == "failed" and refusals:
                    outcome, lines = "refused", refusals
                yield name, outcome, lines[-1]
                left = left[1:]
        if process.returncode and left:
            yield left[0], "aborted", f"exit status {process.returncode}"
            left = left[1:]
