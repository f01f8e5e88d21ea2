"""TEST=round: the rounding unit against golden, on random cases or a vector file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.run.harness.player import PlayedUnit
from neuroncore_rtl.run.settings import Settings, choice, integer
from neuroncore_rtl.spec.formats import FORMATS, Format
from neuroncore_rtl.tb.check import comparison
from neuroncore_rtl.tb.check.comparison import Cases, Comparison
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.vectors import ROUND_LAYOUT, read_round
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["TEST"]

MODES = ("rne", "sr")  # in the order of the unit's bit `stochastic`
_BOTH = "both"
_BY_CODE = list(FORMATS.values())


def random_cases(seed: int, formats: Sequence[Format], modes: Sequence[str], count: int) -> Cases:
    """Return `count` random cases, with frequent special values, borders and ties."""
    rng = np.random.default_rng(seed)
    targets = [(fmt, mode) for fmt in formats for mode in modes]
    parts = []
    for number, (fmt, mode) in enumerate(targets):
        share = (count + number) // len(targets)
        value, random = stimulus.round_cases(rng, fmt, mode, share)
        operands = {
            "stochastic": np.full(share, MODES.index(mode), np.uint32),
            "value": value.astype(np.uint32),
            "random": np.zeros(share, np.uint32) if random is None else random.astype(np.uint32),
        }
        parts.append(Cases.from_operands(np.full(share, fmt.code, np.uint8), operands))
    return comparison.interleave(rng, parts)


def compare(cases: Cases, latency: int, file: Path | None = None) -> Comparison:
    """Return the comparison of the RTL with golden on `cases`, from `file` if they are not random."""
    stochastic, value, random = (cases.operands[name] for name in ("stochastic", "value", "random"))
    golden = np.zeros(len(cases), np.uint32)
    for code in np.unique(cases.formats):
        for number, mode in enumerate(MODES):
            chosen = (cases.formats == code) & (stochastic == number)
            words = random[chosen] if mode == "sr" else None
            golden[chosen] = arith.round_fp32(value[chosen], _BY_CODE[code], mode, words)

    def describe(case: int) -> str:
        text = f"{_BY_CODE[cases.formats[case]].name} {MODES[stochastic[case]]} {value[case]:08x}"
        return f"{text} {random[case]:08x}" if stochastic[case] else text

    return Comparison(
        unit=PlayedUnit(Fp32Rounder(latency), ("format", "stochastic", "value", "random"), output="word"),
        cases=cases,
        golden=golden,
        describe=describe,
        digits=lambda case: _BY_CODE[cases.formats[case]].bits // 4,
        file=file,
    )


def _jobs(settings: Settings) -> Jobs:
    modes = MODES if settings.round == _BOTH else (settings.round,)
    draw, played = partial(random_cases, settings.seed, modes=modes), partial(compare, latency=settings.latency)
    return comparison.played_jobs(settings, read_round, draw, played, FORMATS.values())


_ROUND = choice("ROUND", _BOTH, "rounding of the random cases", (*MODES, _BOTH))
_LATENCY = integer("LATENCY", 2, "pipeline stages of the rounding unit", min(Fp32Rounder.CUTS), max(Fp32Rounder.CUTS))

TEST = Scenario(
    name="round",
    summary="FP32 to every format, to nearest even and stochastic, against golden, on random cases or a vector file",
    options=comparison.options(FORMATS.values(), ROUND_LAYOUT, _ROUND, _LATENCY),
    jobs=_jobs,
    rows=partial(comparison.played_rows, own="LATENCY", drawn=["ROUND"]),
    timed=False,
)
