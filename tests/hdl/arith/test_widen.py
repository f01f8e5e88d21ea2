from itertools import product

import numpy as np
from amaranth import Module
from amaranth.lib import data

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith import formats, integer
from neuroncore_rtl.hdl.arith.saturate import Saturate
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.run.harness.player import Playable
from neuroncore_rtl.spec.formats import FORMATS, INT32, UINT32, Format
from neuroncore_rtl.tb.stimulus.operands import random_fp32, special_codes
from tests.hdl.arith.units import assert_same, run, shuffled
from tests.hdl.simulation import assign

INTEGERS = tuple(fmt for fmt in FORMATS.values() if not fmt.is_float)
TO_FP32, TO_INTEGER, NARROWED, TO_ODD = range(4)


class StorageUnit(Playable):
    """Combinational `Widen` and `Saturate` with an output register; `output` selects one of their results."""

    def __init__(self):
        super().__init__(data.StructLayout({"dtype": formats.FormatCode, "output": 2, "uint32": 1, "word": 32}), 1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.widen = widen = Widen()
        m.submodules.saturate = saturate = Saturate()
        word, results = self.word, {TO_FP32: widen.fp32, TO_INTEGER: widen.integer, NARROWED: saturate.word}
        assign(m, widen, word=word.word, dtype=word.dtype, odd=word.output == TO_ODD)
        assign(m, saturate, value=word.word, uint32=word.uint32, dtype=word.dtype)
        with m.Switch(word.output):
            for output, value in (results | {TO_ODD: widen.fp32}).items():
                with m.Case(output):
                    m.d.sync += self.result.eq(value)
        self.delay_valid(m)
        return m


def words_of(rng, fmt: Format, count: int) -> np.ndarray:
    if fmt.is_float and fmt.bits == 32:
        return random_fp32(rng, count)
    noise = rng.integers(0, 1 << 32, count, np.uint32)
    if fmt in (INT32, UINT32):
        return (noise.view(np.int32) >> rng.integers(0, 32, count, np.int32)).view(np.uint32)
    above = np.uint32((0xFFFFFFFF << fmt.bits) & 0xFFFFFFFF)
    codes = np.arange(1 << fmt.bits, dtype=np.uint32)
    if len(codes) > count:
        codes = np.concatenate([special_codes(fmt).astype(np.uint32), rng.choice(codes, count)])
    return codes | rng.choice(noise, len(codes)) & above


def storage_cases(rng, count):
    parts = []
    for fmt in FORMATS.values():
        words = words_of(rng, fmt, max(count, 1 << fmt.bits) if count > 10_000 and fmt.bits <= 16 else count)
        codes = words.astype(arith.storage_dtype(fmt))
        integers = np.zeros_like(words) if fmt.is_float else arith.integers(codes, fmt)
        results = {TO_FP32: arith.widen(codes, fmt), TO_ODD: arith.widen(codes, fmt, odd=True), TO_INTEGER: integers}
        parts += [(fmt.code, output, 0, words, expected) for output, expected in results.items()]
    for fmt, source in product(INTEGERS, (INT32, UINT32)):
        borders = np.clip(rng.choice([fmt.min, fmt.max], count) + rng.integers(-1, 2, count), source.min, source.max)
        anything = words_of(rng, source, count).view(source.name)
        values = np.where(rng.random(count) < 0.3, borders, anything).astype(source.name)
        expected = arith.saturate(values, fmt).astype(np.uint32)
        parts.append((fmt.code, NARROWED, source is UINT32, values.view(np.uint32), expected))
    return shuffled(rng, parts, ("dtype", "output", "uint32", "word"))


def test_conversions_in_bulk_are_those_of_golden(rng, sim):
    assert_same(StorageUnit(), *storage_cases(rng, {"verilator": 60_000, "icarus": 200}[sim]), sim)


def test_every_latency_gives_what_golden_gives(rng):
    codes = [(fmt, words_of(rng, fmt, 50)) for fmt in FORMATS.values()]
    parts = [(fmt.code, words, arith.widen(words.astype(arith.storage_dtype(fmt)), fmt)) for fmt, words in codes]
    cases, expected = shuffled(rng, parts, ("dtype", "word"))
    for latency in Widen.CUTS:
        assert run(Widen(latency), cases, "fp32") == expected.tolist()


def test_an_integral_fp32_number_becomes_an_integer(rng):
    edges = [0, 1, 2, 3, (1 << 23) - 1, 1 << 23, (1 << 24) - 1]
    integers = np.array([*edges, *(-edge for edge in edges), *rng.integers(-(1 << 24) + 1, 1 << 24, 500)])
    integers = np.concatenate([integers, integers[-500:] >> rng.integers(0, 24, 500)])
    words = [0x80000000, *integers.astype(np.float32).view(np.uint32)]
    assert run(integer.IntoInt(), {"value": words}) == [0, *(integers & 0xFFFFFFFF)]
