# amaranth: UnusedElaboratable=no

"""Between storage words and the lanes' arithmetic: every code of the narrow formats, and saturation, against golden."""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import data

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.saturate import Saturate
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP8E4M3, FP16, FP32, INT8, INT16, INT32, TF32, Format
from neuroncore_rtl.tb.harness.player import Playable
from neuroncore_rtl.tb.stimulus.operands import random_fp32, special_codes
from tests.hdl.arith.units import differences

PER_FORMAT = {"verilator": 60_000, "icarus": 200}
INTEGERS = (INT8, INT16, INT32)
TO_FP32, TO_INTEGER, SATURATED = range(3)


class StorageUnit(Playable):
    """Both conversions, combinational, behind one register; `output` selects what is seen."""

    def __init__(self):
        super().__init__(data.StructLayout({"dtype": FormatCode, "output": 2, "word": 32}), 1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.widen = widen = Widen()
        m.submodules.saturate = saturate = Saturate()
        m.d.comb += [
            widen.word.eq(self.word.word),
            widen.dtype.eq(self.word.dtype),
            saturate.value.eq(self.word.word),
            saturate.dtype.eq(self.word.dtype),
        ]
        with m.Switch(self.word.output):
            for output, value in ((TO_FP32, widen.fp32), (TO_INTEGER, widen.integer), (SATURATED, saturate.word)):
                with m.Case(output):
                    m.d.sync += self.result.eq(value)
        self.delay_valid(m)
        return m


def words_of(rng, fmt: Format, count: int) -> np.ndarray:
    """Words whose low bits are every code of a format of at most 16 bits if `count` allows it; anything above them."""
    if fmt.is_float and fmt.bits == 32:
        return random_fp32(rng, count)
    noise = rng.integers(0, 1 << 32, count, np.uint32)
    if fmt == INT32:
        return (noise.view(np.int32) >> rng.integers(0, 32, count, np.int32)).view(np.uint32)
    above = np.uint32((0xFFFFFFFF << fmt.bits) & 0xFFFFFFFF)
    codes = np.arange(1 << fmt.bits, dtype=np.uint32)
    if len(codes) > count:
        codes = np.concatenate([special_codes(fmt).astype(np.uint32), rng.choice(codes, count)])
    return codes | rng.choice(noise, len(codes)) & above


def storage_cases(rng, count):
    """Cases of StorageUnit and their results by golden."""
    parts = []
    for fmt in FORMATS.values():
        words = words_of(rng, fmt, max(count, 1 << fmt.bits) if count > 10_000 and fmt.bits <= 16 else count)
        codes = words.astype(arith.storage_dtype(fmt))
        integers = np.zeros_like(words) if fmt.is_float else arith.integers(codes, fmt).view(np.uint32)
        parts += [(fmt.code, TO_FP32, words, arith.widen(codes, fmt)), (fmt.code, TO_INTEGER, words, integers)]
    for fmt in INTEGERS:
        borders = np.clip(rng.choice([fmt.min, fmt.max], count) + rng.integers(-1, 2, count), INT32.min, INT32.max)
        values = np.where(rng.random(count) < 0.3, borders, words_of(rng, INT32, count).view(np.int32)).astype(np.int32)
        parts.append((fmt.code, SATURATED, values.view(np.uint32), arith.saturate(values, fmt).astype(np.uint32)))
    sizes = [len(words) for _, _, words, _ in parts]
    cases = {
        "dtype": np.repeat(np.array([code for code, *_ in parts], np.uint32), sizes),
        "output": np.repeat(np.array([output for _, output, *_ in parts], np.uint32), sizes),
        "word": np.concatenate([words for _, _, words, _ in parts]),
    }
    return cases, np.concatenate([results for *_, results in parts])


def test_conversions_in_bulk_are_those_of_golden(rng, sim):
    cases, expected = storage_cases(rng, PER_FORMAT[sim])
    order = rng.permutation(len(expected))
    cases, expected = {name: column[order] for name, column in cases.items()}, expected[order]
    wrong = differences(StorageUnit(), cases, expected, sim)
    assert wrong.size == 0, {name: f"{column[wrong[0]]:x}" for name, column in cases.items()}


@pytest.mark.parametrize(
    ("fmt", "word", "fp32"),
    [
        pytest.param(FP32, 0x80000001, 0x80000001, id="FP32 subnormal"),
        pytest.param(FP32, 0xFFC12345, FP32.nan, id="FP32 NaN is canonical"),
        pytest.param(TF32, 0x3F801FFF, 0x3F800000, id="TF32 padding is ignored"),
        pytest.param(TF32, 0x80001FFF, 0x80000000, id="TF32 padding alone is zero"),
        pytest.param(TF32, 0xFF800001, FP32.nan, id="TF32 padding tells a NaN"),
        pytest.param(TF32, 0xFF800000, 0xFF800000, id="TF32 infinity"),
        pytest.param(BF16, 0xDEAD0001, 0x00010000, id="BF16 subnormal, upper bits ignored"),
        pytest.param(FP16, 0x0001, 0x33800000, id="FP16 smallest subnormal"),
        pytest.param(FP16, 0x83FF, 0xB87FC000, id="FP16 largest subnormal"),
        pytest.param(FP16, 0xFC00, 0xFF800000, id="FP16 infinity"),
        pytest.param(FP16, 0x7C01, FP32.nan, id="FP16 NaN"),
        pytest.param(FP16, 0xFFFF8000, 0x80000000, id="FP16 -0"),
        pytest.param(FP8E4M3, 0x77, 0x43700000, id="E4M3 largest, 240"),
        pytest.param(FP8E4M3, 0x78, 0x7F800000, id="E4M3 infinity"),
        pytest.param(INT8, 0x80, 0xC3000000, id="-128"),
        pytest.param(INT16, 0xFFFF0000, 0x00000000, id="INT16 zero"),
        pytest.param(INT32, 0x80000000, 0xCF000000, id="-2**31"),
        pytest.param(INT32, 0x7FFFFFFF, 0x4F000000, id="2**31 - 1 rounds up to 2**31"),
        pytest.param(INT32, 0x01000001, 0x4B800000, id="2**24 + 1 ties to even, down"),
        pytest.param(INT32, 0x01000003, 0x4B800002, id="2**24 + 3 ties to even, up"),
        pytest.param(INT32, 0xFEFFFFFF, 0xCB800000, id="-2**24 - 1 ties to even"),
    ],
)
def test_known_fp32(run, fmt, word, fp32):
    assert run(Widen(), [{"word": word, "dtype": fmt.code}], "fp32") == [fp32]


@pytest.mark.parametrize(
    ("fmt", "value", "word"),
    [
        (INT8, 127, 0x7F), (INT8, 128, 0x7F), (INT8, -128, 0x80), (INT8, -129, 0x80), (INT8, -1, 0xFF),
        (INT16, 32768, 0x7FFF), (INT16, -32769, 0x8000), (INT16, -1, 0xFFFF), (INT32, -(1 << 31), 0x80000000),
    ],
)  # fmt: skip
def test_known_saturation(run, fmt, value, word):
    assert run(Saturate(), [{"value": value & 0xFFFFFFFF, "dtype": fmt.code}], "word") == [word]
