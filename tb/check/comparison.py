"""Comparison of a unit's results with golden, and with the expected results of a vector file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.harness.player import Playable, PlayerDevice, PlayerWork
from neuroncore_rtl.run.job import DeviceJob
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import SEED, SIM, Option, Settings, UsageError, choice, integer
from neuroncore_rtl.spec.formats import FORMATS, Format

__all__ = ["DEFAULT_COUNT", "SHOWN", "Cases", "Comparison", "interleave", "options", "played_jobs", "played_rows"]

DEFAULT_COUNT = {"verilator": 1_000_000, "icarus": 20_000}
"""A few seconds in either simulator."""

SHOWN = 20
"""Largest number of mismatches to print; further mismatches are only counted."""


@dataclass(frozen=True)
class Cases:
    """Cases of a unit by column.

    `formats` has format codes, `operands` the other inputs. `expected` is valid where `has_expected` is true. `lines`
    has line numbers in the file, 0 for generated cases.
    """

    formats: np.ndarray
    operands: dict[str, np.ndarray]
    expected: np.ndarray
    has_expected: np.ndarray
    lines: np.ndarray

    def __len__(self) -> int:
        return len(self.formats)

    @classmethod
    def from_operands(cls, formats: np.ndarray, operands: dict[str, np.ndarray]) -> "Cases":
        nothing = np.zeros(len(formats), np.uint32)
        return cls(formats, operands, nothing, nothing.astype(bool), nothing)


def options(formats: Iterable[Format], layout: str, *others: Option) -> tuple[Option, ...]:
    """Return the options of a TEST that plays random cases, or a vector file."""
    counts = ", ".join(f"{count:,} with SIM={sim}" for sim, count in DEFAULT_COUNT.items())
    vectors = (
        f"file of cases, one per line: {layout}, in hex; # starts a comment, NaN must be in canonical form; "
        "a case without EXPECTED is printed with its result"
    )
    return (
        Option(name="VECTORS", type=Path, default=None, help=vectors),
        choice("DTYPE", None, "format of the random cases; default all", (fmt.name for fmt in formats)),
        *others,
        SEED,
        integer("COUNT", None, f"number of random cases over all formats; default {counts}", 1, 10_000_000),
        SIM,
    )


def interleave(rng: np.random.Generator, parts: list[Cases]) -> Cases:
    """Return the cases of all parts in random order, so that the format changes from cycle to cycle."""
    order = rng.permutation(sum(map(len, parts)))
    return Cases.from_operands(
        np.concatenate([part.formats for part in parts])[order],
        {name: np.concatenate([part.operands[name] for part in parts])[order] for name in parts[0].operands},
    )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Cases to play through a unit, and golden's results to compare with.

    `describe` returns a case as a line of a vector file, without the result. `digits` returns the number of hexadecimal
    digits of a case's result.
    """

    unit: Playable
    cases: Cases
    golden: np.ndarray
    describe: Callable[[int], str]
    digits: Callable[[int], int]
    file: Path | None = None

    def job(self, mutate: Callable[[str], str] | None = None) -> DeviceJob:
        fields = {"format": self.cases.formats, **self.cases.operands}
        work = PlayerWork(fields=fields, bubbles=self.file is None)
        doing = f"playing {len(self.cases):,} cases"
        return DeviceJob(on=PlayerDevice(self.unit, mutate), load=work, doing=doing, subject=self)

    def verdict(self, outcome: Outcome) -> Report:
        results, unknown = outcome.memories["results"], outcome.memories["unknown"]
        failures = []
        if len(results) != len(self.cases):
            failures.append(f"the unit returned {len(results):,} results for {len(self.cases):,} cases")
        if len(unknown):
            failures.append(f"{len(unknown):,} results have unknown bits")
        compared = min(len(results), len(self.cases))
        results = results[:compared]

        differs = results != self.golden[:compared]
        differs[unknown[unknown < compared]] = True
        has_expected = self.cases.has_expected[:compared]
        unexpected = has_expected & (results != self.cases.expected[:compared])
        self._print(results, differs, unexpected)
        mismatches, wrong, expected = (int(which.sum()) for which in (differs, unexpected, has_expected))
        if wrong:
            failures.append(f"{wrong:,} of {expected:,} results differ from EXPECTED")
        counts = np.bincount(self.cases.formats[:compared], minlength=len(FORMATS))
        return Report(
            compared=compared,
            mismatches=mismatches,
            rows={
                **{f"cases_{fmt.name}": int(counts[fmt.code]) for fmt in FORMATS.values() if counts[fmt.code]},
                "differ_from_golden": mismatches,
                **({"compared_with_expected": expected, "differ_from_expected": wrong} if self.file else {}),
            },
            failures=failures,
        )

    def _print(self, results: np.ndarray, differs: np.ndarray, unexpected: np.ndarray) -> None:
        wanted = differs | unexpected
        wanted[np.flatnonzero(wanted)[SHOWN:]] = False
        if self.file:
            wanted |= ~self.cases.has_expected[: len(results)]
        for case in np.flatnonzero(wanted):
            text, digits = self.describe(case), self.digits(case)
            got = f"{results[case]:0{digits}x}"
            where = f"{self.file}:{self.cases.lines[case]}: {text}" if self.file else text
            if unexpected[case]:
                print(f"{where}: expected {self.cases.expected[case]:0{digits}x}, got {got}")
            elif self.file and not self.cases.has_expected[case]:
                print(f"{text} {got}")
            if differs[case]:
                print(f"{where}: RTL {got}, golden {self.golden[case]:0{digits}x}")


def played_jobs(
    settings: Settings,
    read: Callable[[Path], Cases],
    draw: Callable[..., Cases],
    compare: Callable[..., Comparison],
    formats: Iterable[Format],
) -> Iterator[DeviceJob]:
    """Yield the job of the cases of VECTORS by `read`, or of `count` random cases of the given formats by `draw`."""
    if settings.vectors is not None:
        for name in ("DTYPE", "COUNT"):
            if settings.values[name] is not None:
                raise UsageError(f"{name} must not be given with VECTORS: it chooses random cases")
        cases = read(settings.vectors)
    else:
        chosen = [fmt for fmt in formats if settings.dtype in (None, fmt.name)]
        cases = draw(chosen, count=settings.count or DEFAULT_COUNT[settings.sim])
    yield compare(cases, file=settings.vectors).job()


def played_rows(settings: Settings, results: Sequence[Result], own: str, drawn: Sequence[str] = ()) -> Report:
    """Return the report of a job of cases; it has the settings `own` of the unit, and `drawn` of random cases."""
    (result,), values = results, settings.values
    if settings.vectors is not None:
        used = {"VECTORS": str(settings.vectors)}
    else:
        used = {name: values[name] for name in ("DTYPE", *drawn, "SEED")}
        used |= {"COUNT": settings.count or DEFAULT_COUNT[settings.sim]}
    used |= {name: values[name] for name in (own, "SIM")}
    return replace(result.job.subject.verdict(result.outcome), settings=used)
