"""TEST=mac: edge decoders and multiply-accumulate against golden, on random cases or a vector file."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from amaranth import Module, Signal
from amaranth.lib import data

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS
from neuroncore_rtl.run.harness.player import Playable
from neuroncore_rtl.run.settings import Settings, integer
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FORMATS, FP32, MAC_FORMATS, Format
from neuroncore_rtl.tb.check import comparison
from neuroncore_rtl.tb.check.comparison import Cases, Comparison
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.vectors import MAC_LAYOUT, read_mac
from neuroncore_rtl.tb.tests.scenario import Jobs, Scenario

__all__ = ["FORMATS_PLAYED", "TEST", "MacUnit"]

WORD = data.StructLayout({"format": FormatCode, "x": 32, "w": 32, "acc": 32, "x_half": 1, "w_half": 1})
FORMATS_PLAYED = (*MAC_FORMATS, FP32)  # an FP32 case multiplies two halves
_HALVES = ("hi", "lo")
_BY_CODE = list(FORMATS.values())


class MacUnit(Playable):
    """A processing element with its two edge decoders: fp32(acc + x * w), with x and w as storage words.

    For FP32, x and w are a half of the 24-bit significand of each word; `x_half` and `w_half` select the halves. A
    lower half that is zero counts as absent, as in the loader and the mover.

    Arguments:
        mac_latency: latency of `Mac`, which registers `acc` in the cycle that registers the operands here.
        significand_bits: significand bits of the operands.

    Ports:
        word: format, x, w, acc; x_half, w_half: 1 for FP32's lower halves, else 0.
        result: FP32 sum.
    """

    def __init__(self, mac_latency: int, significand_bits: int = SIGNIFICAND_BITS):
        self.mac = Mac(mac_latency, significand_bits)
        super().__init__(WORD, self.mac.latency)

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self.mac
        for port, name in ((mac.x, "x"), (mac.w, "w")):
            m.submodules[f"decode_{name}"] = decoder = EdgeDecoder(mac.significand_bits)
            operand = Signal.like(port, name=f"operand_{name}")
            m.d.comb += [decoder.word.eq(self.word[name]), decoder.format.eq(self.word.format)]
            half = self.word[f"{name}_half"]
            m.d.comb += [decoder.present.eq(1), decoder.half.eq(half), decoder.skip_zero.eq(half), port.eq(operand)]
            m.d.sync += operand.eq(decoder.out)
        m.d.comb += [mac.acc.eq(self.word.acc), self.result.eq(mac.out)]
        self.delay_valid(m)
        return m


def random_cases(seed: int, formats: Sequence[Format], count: int) -> Cases:
    """Return `count` random cases, with frequent special values and ties."""
    rng = np.random.default_rng(seed)
    parts = []
    for number, fmt in enumerate(formats):
        share = (count + number) // len(formats)
        pairs = list(product((0, 1), repeat=2)) if fmt == FP32 else [(None, None)]
        for place, halves in enumerate(pairs):
            some = (share + place) // len(pairs)
            names = (None if half is None else _HALVES[half] for half in halves)
            words = dict(zip(("x", "w", "acc"), stimulus.mac_cases(rng, fmt, some, *names), strict=True))
            words |= {f"{name}_half": np.full(some, half or 0) for name, half in zip("xw", halves, strict=True)}
            operands = {name: word.astype(np.uint32) for name, word in words.items()}
            parts.append(Cases.from_operands(np.full(some, fmt.code, np.uint8), operands))
    return comparison.interleave(rng, parts)


def compare(cases: Cases, mac_latency: int, file: Path | None = None) -> Comparison:
    """Return the comparison of the RTL with golden on `cases`, from `file` if they are not random."""
    x, w, acc = (cases.operands[name] for name in ("x", "w", "acc"))
    none = np.zeros(len(cases), np.uint32)
    halves = {f"{name}_half": cases.operands.get(f"{name}_half", none) for name in "xw"}
    cases = replace(cases, operands=cases.operands | halves)
    kinds = np.stack([cases.formats, *halves.values()])
    golden = np.zeros(len(cases), np.uint32)
    for code, *pair in np.unique(kinds, axis=1).T.tolist():
        chosen, fmt = (kinds.T == (code, *pair)).all(axis=1), _BY_CODE[code]
        own = [_HALVES[half] for half in pair] if fmt == FP32 else []
        golden[chosen] = arith.mac(x[chosen], w[chosen], acc[chosen], fmt, *own)

    def describe(case: int) -> str:
        fmt = _BY_CODE[cases.formats[case]]
        digits = fmt.bits // 4
        line = f"{fmt.name} {x[case]:0{digits}x} {w[case]:0{digits}x} {acc[case]:08x}"
        pair = (_HALVES[words[case]] for words in halves.values())
        return f"{line} # {' * '.join(pair)}" if fmt == FP32 else line

    return Comparison(
        unit=MacUnit(mac_latency), cases=cases, golden=golden, describe=describe, digits=lambda case: 8, file=file
    )


def _jobs(settings: Settings) -> Jobs:
    draw, played = partial(random_cases, settings.seed), partial(compare, mac_latency=settings.mac_latency)
    return comparison.played_jobs(settings, read_mac, draw, played, FORMATS_PLAYED)


_STAGES, _RANGE = "pipeline stages of the multiply-accumulate", Config.RANGES["mac_latency"]
_LATENCY = integer("MAC_LATENCY", PRESETS["full"].mac_latency, _STAGES, *_RANGE)

TEST = Scenario(
    name="mac",
    summary="edge decoders and multiply-accumulate against golden, on random cases or a vector file",
    options=comparison.options(FORMATS_PLAYED, MAC_LAYOUT, _LATENCY),
    jobs=_jobs,
    rows=partial(comparison.played_rows, own="MAC_LATENCY"),
    timed=False,
)
