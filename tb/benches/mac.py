"""TEST=mac: edge decoders and multiply-accumulate against golden, on random cases or on a vector file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from amaranth import Module, Signal
from amaranth.lib import data

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FORMATS, MAC_FORMATS, Format
from neuroncore_rtl.tb.check import comparison
from neuroncore_rtl.tb.check.comparison import Cases, Comparison
from neuroncore_rtl.tb.harness.player import Playable
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.sim.settings import Bench, Settings, integer
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.vectors import MAC_LAYOUT, read_mac

__all__ = ["BENCH", "WORD", "MacUnit", "compare", "random_cases"]

WORD = data.StructLayout({"format": FormatCode, "x": 32, "w": 32, "acc": 32})
"""One case."""

_BY_CODE = list(FORMATS.values())


class MacUnit(Playable):
    """What one processing element and its two edge decoders compute: fp32(acc + x * w) of storage words.

    Arguments:
        mac_latency: of :class:`Mac`, which registers `acc` where the decoded operands are registered here.
        significand_bits: of the operands.

    Ports:
        word: format, x, w, acc. result: FP32.
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
            m.d.comb += [decoder.present.eq(1), port.eq(operand)]
            m.d.sync += operand.eq(decoder.out)
        m.d.comb += [mac.acc.eq(self.word.acc), self.result.eq(mac.out)]
        self.delay_valid(m)
        return m


def random_cases(seed: int, formats: Sequence[Format], count: int) -> Cases:
    """Return `count` random cases, spread over the formats, special values and ties over-represented."""
    rng = np.random.default_rng(seed)
    parts = []
    for number, fmt in enumerate(formats):
        share = (count + number) // len(formats)
        x, w, acc = stimulus.mac_cases(rng, fmt, share)
        operands = {"x": x.astype(np.uint32), "w": w.astype(np.uint32), "acc": acc.astype(np.uint32)}
        parts.append(Cases.generated(np.full(share, fmt.code, np.uint8), operands))
    return comparison.interleave(rng, parts)


def compare(cases: Cases, mac_latency: int, file: Path | None = None) -> Comparison:
    """Return the comparison of the RTL with golden on `cases`, which came from `file` or from no file."""
    x, w, acc = (cases.operands[name] for name in ("x", "w", "acc"))
    golden = np.zeros(len(cases), np.uint32)
    for code in np.unique(cases.formats):
        chosen = cases.formats == code
        golden[chosen] = arith.mac(x[chosen], w[chosen], acc[chosen], _BY_CODE[code])

    def describe(case: int) -> str:
        fmt = _BY_CODE[cases.formats[case]]
        digits = fmt.bits // 4
        return f"{fmt.name} {x[case]:0{digits}x} {w[case]:0{digits}x} {acc[case]:08x}"

    return Comparison(
        unit=MacUnit(mac_latency), cases=cases, golden=golden, describe=describe, digits=lambda case: 8, file=file
    )


def _run(settings: Settings) -> Report:
    draw, played = partial(random_cases, settings.seed), partial(compare, mac_latency=settings.mac_latency)
    return comparison.run_cases("mac", settings, read_mac, draw, played, MAC_FORMATS, "MAC_LATENCY")


_STAGES, _RANGE = "pipeline stages of the multiply-accumulate", Config.RANGES["mac_latency"]
_LATENCY = integer("MAC_LATENCY", PRESETS["full"].mac_latency, _STAGES, *_RANGE)

BENCH = Bench(
    name="mac",
    summary="edge decoders and multiply-accumulate against golden, on random cases or a vector file",
    options=comparison.options(MAC_FORMATS, MAC_LAYOUT, _LATENCY),
    run=_run,
)
