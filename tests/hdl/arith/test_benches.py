import re

import numpy as np
import pytest
from amaranth import Module, Value

from neuroncore_rtl.hdl.arith import round as rounding
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.run.harness import player
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP16, FP32, INT8, TF32
from neuroncore_rtl.tb.tests.engines import mac
from neuroncore_rtl.tb.tests.engines import round as round_bench
from tests.hdl.simulation import slow, slow_if
from tests.hdl.tensor.engines import in_shell

SEED = 5
FEW = 2_000
MANY = {"verilator": 200_000, "icarus": 10_000}

MAC_VECTORS = """\
# FORMAT X W ACC [EXPECTED]
bf16 3f80 4000 00000000 40000000
fp16 3C00 c000 3f800000 bf800000  # 1 * -2 + 1
tf32 0x3f802000 3f802000 00000000 3f804008
fp8e4m3 77 77 00000000 47610000   # 240 * 240
fp8e5m2 01 01 80000000 2f800000   # 2**-32
fp8e3m4 70 00 3f800000 7fc00000   # Inf * 0
int8 80 80 4b000000 4b004000
bf16 7f80 3f80 ff800000 7fc00000  # Inf - Inf
bf16 0080 3f00 00000000 00400000  # a subnormal product
bf16 3f80 3f80 33000000
"""

ROUND_VECTORS = """\
# FORMAT rne|sr VALUE [RANDOM] [EXPECTED]
bf16 sr 3f808000 80000000 3f81
bf16 sr 3f808000 7fffffff 3f80
bf16 rne 3f808000 3f80
fp16 rne 477ff000 7c00           # the tie above the largest overflows
tf32 rne 3f801000 3f800000
fp8e4m3 rne 43780000 78          # 248 ties up to Inf
fp8e5m2 rne 37000001 01
fp8e3m4 rne ffc00001 78
int8 rne c3020000 80
int16 sr 3f000000 80000000 0001
int32 rne 4f000000 7fffffff
int8 rne bf800000
"""


def broken(result="r", result_valid="v"):
    body = f"wire [31:0] r; wire v; assign result = {result}; assign result_valid = {result_valid};"
    return lambda text: in_shell(text, r"\w+Unit", {"result": "r", "result_valid": "v"}, body)


def mac_comparison(count=FEW):
    return mac.compare(mac.random_cases(SEED, mac.FORMATS_PLAYED, count), mac_latency=2)


def round_comparison(count=FEW):
    return round_bench.compare(round_bench.random_cases(SEED, tuple(FORMATS.values()), round_bench.MODES, count), 2)


def report_of(comparison, mutate=None, sim="icarus"):
    job = comparison.job(mutate)
    found = comparison.verdict(run_device(job.device(), job.work(1), sim=sim))
    counted = {"compared": found.compared, "mismatches": found.mismatches, "failures": found.failures}
    return Report(test="test", label="test", settings={}, rows=found.rows, **counted)


@pytest.mark.parametrize("comparison", (mac_comparison, round_comparison))
def test_rtl_is_golden(comparison, sim):
    print(f"seed {SEED}")
    report = report_of(comparison(MANY[sim]), sim=sim)
    assert report.problems == []
    assert report.compared == MANY[sim]


FAULTS = {
    "constant zero": (broken("32'd0"), "differ from the golden model"),
    "valid never": (broken(result_valid="1'b0"), "the unit returned 0 results for 2,000 cases"),
    "last place wrong once in 128": (broken("r ^ (r[15:9] == 0)"), "differ from the golden model"),
    "one result too many": (broken(result_valid="v | valid"), "results for 2,000 cases"),
    "unknown bits": (broken("{r[31:1], r[0] ? 1'bx : 1'b0}"), "results have unknown bits"),
}
"""Faults and the reported problem; the first three are also tested in the multiply-accumulate unit."""


@pytest.mark.parametrize(
    ("comparison", "fault"),
    [*((round_comparison, fault) for fault in FAULTS), *slow(*((mac_comparison, fault) for fault in list(FAULTS)[:3]))],
)
def test_broken_unit_fails(comparison, fault):
    mutate, problem = FAULTS[fault]
    report = report_of(comparison(), mutate)
    assert report.exit_status == 1
    assert problem in " ".join(report.problems)


DECODERS = {
    "the lower half is the upper one": (FP32, {"half": lambda d: 0}),
    "the upper half is the lower one": (FP32, {"half": lambda d: 1}),
    "a zero of a lower half is there": (FP32, {"skip_zero": lambda d: 0}),
    "a zero is absent": (BF16, {"skip_zero": lambda d: 1}),
    "padding does not count": (TF32, {"word": lambda d: d.word & ~0x1FFF}),
    "the last bit of the padding does not count": (TF32, {"word": lambda d: d.word & ~1}),
    "the highest bit of a NaN does not count": (BF16, {"word": lambda d: d.word & ~(d.word[7:15].all() << 6)}),
}
"""Faults of an edge decoder: a format for which TEST=mac detects it, and the values of faulty inputs."""


@pytest.mark.parametrize("fault", slow_if(lambda fault: list(DECODERS).index(fault) % 3 > 0, DECODERS))
def test_broken_decoder_fails(fault, monkeypatch):
    fmt, wrong = DECODERS[fault]

    class Broken(EdgeDecoder):
        def elaborate(self, platform):
            m = Module()
            m.submodules.sound = sound = EdgeDecoder(self.significand_bits)
            for name in ("word", "format", "half", "present", "skip_zero"):
                value = wrong[name](self) if name in wrong else getattr(self, name)
                m.d.comb += Value.cast(getattr(sound, name)).eq(Value.cast(value))
            m.d.comb += self.out.eq(sound.out)
            return m

    monkeypatch.setattr(mac, "EdgeDecoder", Broken)
    report = report_of(mac.compare(mac.random_cases(SEED, (fmt,), 2000), mac_latency=2))
    assert "differ from the golden model" in " ".join(report.problems)


def test_a_wrapped_unit_without_a_fault_passes():
    assert report_of(mac_comparison(), broken()).problems == []


def test_ties_away_from_zero_fail(monkeypatch, capsys):
    monkeypatch.setattr(rounding, "_ABOVE_HALF", 1 << 31)
    report = report_of(round_comparison())
    assert 0 < report.mismatches < report.compared
    assert re.search(r"^bf16 rne [0-9a-f]{8}: RTL [0-9a-f]{4}, golden [0-9a-f]{4}$", capsys.readouterr().out, re.M)


def run_bench(bench, path, **values):
    return bench.run(bench.settings(VECTORS=path, SIM="icarus", **values))


@pytest.mark.parametrize(
    ("bench", "text", "compared", "printed"),
    [
        (mac.TEST, MAC_VECTORS, 10, "bf16 3f80 3f80 33000000 3f800000\n"),
        (round_bench.TEST, ROUND_VECTORS, 12, "int8 rne bf800000 ff\n"),
        (mac.TEST, f"\N{BYTE ORDER MARK}{MAC_VECTORS}", 10, "bf16 3f80 3f80 33000000 3f800000\n"),
    ],
)
def test_vectors_pass_and_a_case_without_expected_is_printed(vectors, capsys, bench, text, compared, printed):
    report = run_bench(bench, vectors(text))
    assert report.problems == []
    assert (report.compared, report.rows["compared_with_expected"]) == (compared, compared - 1)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("bench", "line", "complaint"),
    [
        (mac.TEST, "bf16 3f80 4000 0 40000001", "bf16 3f80 4000 00000000: expected 40000001, got 40000000"),
        (mac.TEST, "bf16 7fc0 4000 0 7fc00001", "bf16 7fc0 4000 00000000: expected 7fc00001, got 7fc00000"),
        (round_bench.TEST, "bf16 sr 3f808000 80000000 3f80", "bf16 sr 3f808000 80000000: expected 3f80, got 3f81"),
        (round_bench.TEST, "int8 rne bf800000 1", "int8 rne bf800000: expected 01, got ff"),
    ],
)
def test_expected_wrong(vectors, capsys, bench, line, complaint):
    path = vectors(f"# comment\n{line}\n")
    report = run_bench(bench, path)
    assert report.exit_status == 1
    assert report.problems == ["1 of 1 results differ from EXPECTED"]
    assert capsys.readouterr().out == f"{path}:2: {complaint}\n"


@pytest.mark.parametrize("bench", (mac.TEST, round_bench.TEST))
def test_malformed_file_is_refused(vectors, bench):
    with pytest.raises(UsageError, match=r"vectors\.txt:1: FORMAT must be one of"):
        run_bench(bench, vectors("bf17 0 0 0\n"))


@pytest.mark.parametrize("option", ({"DTYPE": "bf16"}, {"COUNT": 5}))
def test_options_of_random_cases_beside_vectors_wrong(vectors, option):
    with pytest.raises(UsageError, match=f"{next(iter(option))} must not be given with VECTORS"):
        run_bench(mac.TEST, vectors(MAC_VECTORS), **option)


def test_random_cases_are_reproducible_and_of_the_chosen_formats():
    cases, again = (round_bench.random_cases(SEED, (BF16, INT8), ("sr",), 101) for _ in range(2))
    assert len(cases) == 101
    assert set(cases.formats) == {BF16.code, INT8.code}
    assert cases.operands["stochastic"].all()
    for name, column in cases.operands.items():
        np.testing.assert_array_equal(column, again.operands[name])


def test_pack_puts_the_first_field_lowest():
    fields = {"format": FP16.code, "x": 0x1234, "w": 0x5678, "acc": 0xDEADBEEF, "x_half": 0, "w_half": 1}
    words = player.pack_inputs(mac.WORD, **{name: [value] for name, value in fields.items()})
    assert int.from_bytes(words[0].tobytes(), "big") == mac.WORD.const(fields).as_bits()


def test_pack_wrong():
    with pytest.raises(ValueError, match="format must fit 4 bits, not 0x10"):
        player.pack_inputs(mac.WORD, format=[16], x=[0], w=[0], acc=[0], x_half=[0], w_half=[0])
    with pytest.raises(ValueError, match="fields must be format, x, w, acc, x_half, w_half, not x"):
        player.pack_inputs(mac.WORD, x=[0])
