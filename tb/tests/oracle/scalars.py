"""Third-party cases of scalar operations, on units of the hardware and on golden."""

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.run.harness.player import PlayerDevice, PlayerWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.tb.check.comparison import SHOWN
from neuroncore_rtl.tb.stimulus.scalar_suites import Reading, ScalarCases
from neuroncore_rtl.tb.tests.oracle.units import ORACLE_OPERATIONS, ORACLE_UNITS, OracleOperation

__all__ = ["report_of_scalars"]

WRONG = "hardware_wrong", "golden_wrong"


def report_of_scalars(
    suite: str, reading: Reading, settings: Settings, mutate: Callable[[str], str] | None = None
) -> Report:
    """Compare hardware, changed by `mutate`, and golden with a suite's results on every unit; return the report."""

    @cache
    def device(unit: str) -> PlayerDevice:
        return PlayerDevice(ORACLE_UNITS[unit](settings.mac_latency, settings.vector_latency), mutate)

    table, left_out, failures = defaultdict(Counter), Counter(), []
    for cases in reading.cases:
        for operation in ORACLE_OPERATIONS[cases.operation]:
            taken = np.ones(len(cases), bool) if operation.takes is None else operation.takes(*cases.operands)
            left_out[f"{operation.unit}: {operation.why}"] += int((~taken).sum())
            if taken.any():
                row = table[f"{cases.operation}, {operation.unit}"]
                row.update(dict.fromkeys(("cases", *WRONG, "differ"), 0))
                failures += _play(cases, operation, np.flatnonzero(taken), device(operation.unit), settings.sim, row)
    compared, wrong = (sum(row[name] for row in table.values()) for name in ("cases", WRONG[0]))
    golden_wrong = sum(row[WRONG[1]] for row in table.values())
    for who, count in (("the hardware", wrong), ("golden", golden_wrong)):
        if count:
            failures.append(f"{count:,} of {compared:,} results of {who} are not those of {suite}")
    return Report(
        compared=compared,
        mismatches=sum(row.pop("differ") for row in table.values()),
        rows={
            "operations": [{"operation": name, **row} for name, row in table.items()],
            "left_out": [{"why": why, "cases": count} for why, count in (left_out + reading.left_out).items()],
        },
        failures=tuple(dict.fromkeys(failures)),
    )


def _play(
    cases: ScalarCases, operation: OracleOperation, places: np.ndarray, device: PlayerDevice, sim: str, row: Counter
) -> list[str]:
    """Play the cases with the indices `places`, count mismatches in `row`, and return other failures as sentences."""
    operands = [operand[places] for operand in cases.operands]
    expected, fmt = _canonical(cases.expected[places], operation.result), operation.result
    doing = f"{len(places):,} cases of {cases.operation}, {operation.unit}"
    outcome = run_device(device, PlayerWork(fields=operation.fields(*operands)), sim=sim, doing=doing)
    results, unknown = outcome.memories["results"], outcome.memories["unknown"]
    if len(results) != len(places) or len(unknown):
        row["cases"] += len(places)
        row[WRONG[0]] += len(places)
        return [f"the {operation.unit} returned {len(results):,} results for {doing}, {len(unknown):,} of them unknown"]
    golden = _canonical(operation.golden(*operands), fmt)
    wrong = results != expected, golden != expected
    for at in np.flatnonzero(wrong[0] | wrong[1])[: max(0, SHOWN - row["shown"])]:
        row["shown"] += 1
        shown, digits = " ".join(f"{operand[at]:08x}" for operand in operands), fmt.bits // 4
        said = ", ".join(f"{who} {words[at]:0{digits}x}" for who, words in (("RTL", results), ("golden", golden)))
        print(f"{cases.origin(places[at])}: {cases.operation} {shown}: expected {expected[at]:0{digits}x}, {said}")
    row.update(
        {"cases": len(places), "differ": int((results != golden).sum())}
        | {name: int(which.sum()) for name, which in zip(WRONG, wrong, strict=True)}
    )
    return []


def _canonical(words: np.ndarray, fmt: Format) -> np.ndarray:
    """Return expected or golden words with canonical NaNs; hardware results are compared unchanged."""
    return canonical(words, fmt).astype(np.uint32) if fmt.is_float else words.astype(np.uint32)
