"""Vector files: cases of TEST=mac and TEST=round, one a line, with or without the expected result."""

import re

import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.formats import FORMATS, MAC_FORMATS
from neuroncore_rtl.tb.stimulus.vectors import VectorError, read_mac, read_round
from neuroncore_rtl.tb.tests.engines import mac
from neuroncore_rtl.tb.tests.engines import round as round_bench

MAC_VECTORS = """\
# FORMAT X W ACC [EXPECTED]
bf16 3f80 4000 00000000 40000000

fp16 3C00 c000 3f800000 bf800000  # 1 * -2 + 1
  tf32\t0x3f802000   3f802000 0 3f804008
fp8e4m3 77 77 00000000 47610000   # 240 * 240
fp8e5m2 01 01 80000000 2f800000   # 2**-32
fp8e3m4 70 00 3f800000 7fc00000   # Inf * 0
int8 80 80 0X4b000000 4b004000\r
bf16 7f80 3f80 ff800000 7fc00000  # Inf - Inf
bf16 0080 3f00 00000000 00400000  # a subnormal product
bf16 3f80 3f80 33000000 # no result expected
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
fp16 sr 3c000000 80000000
"""


@pytest.fixture
def vectors(tmp_path):
    def write(text):
        path = tmp_path / "vectors.txt"
        path.write_bytes(text.encode())
        return path

    return write


def run_bench(bench, path, **values):
    return bench.run(bench.settings(VECTORS=path, SIM="icarus", **values))


@pytest.mark.parametrize(
    ("bench", "text", "compared", "printed"),
    [
        (mac.TEST, f"\N{BYTE ORDER MARK}{MAC_VECTORS}", 10, "bf16 3f80 3f80 33000000 3f800000\n"),
        (round_bench.TEST, ROUND_VECTORS, 12, "fp16 sr 3c000000 80000000 2000\n"),
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


@pytest.mark.parametrize("option", ({"DTYPE": "bf16"}, {"COUNT": 5}))
def test_options_of_random_cases_beside_vectors_wrong(vectors, option):
    with pytest.raises(UsageError, match=f"{next(iter(option))} must not be given with VECTORS"):
        run_bench(mac.TEST, vectors(MAC_VECTORS), **option)


MULTIPLIED = f"FORMAT must be one of {', '.join(fmt.name for fmt in MAC_FORMATS)}"
ROUNDED = f"FORMAT must be one of {', '.join(list(FORMATS)[1:])}"

MAC_LINES = [
    ("fp32 0 0 0", f"{MULTIPLIED}, not 'fp32'"),
    ("BF16 0 0 0", f"{MULTIPLIED}, not 'BF16'"),
    ("bf16 0 0", "a case must be FORMAT X W ACC [EXPECTED], not 3 fields"),
    ("bf16 0 0 0 0 0", "a case must be FORMAT X W ACC [EXPECTED], not 6 fields"),
    ("bf16 0 zz 0", "W must be a hexadecimal number, not 'zz'"),
    ("bf16 -1 0 0", "X must be a hexadecimal number, not '-1'"),
    ("bf16 1_0 0 0", "X must be a hexadecimal number, not '1_0'"),
    ("bf16 0 0 0x", "ACC must be a hexadecimal number, not '0x'"),
    ("bf16 10000 0 0", "X must fit the 16 bits of bf16, not '10000'"),
    ("int8 0 100 0", "W must fit the 8 bits of int8, not '100'"),
    ("bf16 0 0 100000000", "ACC must fit the 32 bits of fp32, not '100000000'"),
    ("bf16 0 0 0 100000000", "EXPECTED must fit the 32 bits of fp32, not '100000000'"),
    ("tf32 3f800001 0 0", "X must have its low 13 bits zero (tf32), not '3f800001'"),
]

ROUND_LINES = [
    ("fp32 rne 0", ROUNDED),
    ("bf16", "the rounding mode must be rne or sr, not ''"),
    ("bf16 rtz 0", "the rounding mode must be rne or sr, not 'rtz'"),
    ("bf16 rne", "a case must be FORMAT rne VALUE [EXPECTED], not 2 fields"),
    ("bf16 rne 0 0 0", "a case must be FORMAT rne VALUE [EXPECTED], not 5 fields"),
    ("bf16 sr 0", "a case must be FORMAT sr VALUE RANDOM [EXPECTED], not 3 fields"),
    ("bf16 sr 0 0 0 0", "a case must be FORMAT sr VALUE RANDOM [EXPECTED], not 6 fields"),
    ("bf16 sr 100000000 0", "VALUE must fit the 32 bits of fp32"),
    ("bf16 sr 0 100000000", "RANDOM must fit the 32 bits of fp32"),
    ("int8 rne 0 ffffff80", "EXPECTED must fit the 8 bits of int8"),
    ("tf32 rne 0 1", "EXPECTED must have its low 13 bits zero (tf32)"),
]


@pytest.mark.parametrize(
    ("read", "legal", "line", "rule"),
    [(read_mac, "bf16 0 0 0", *row) for row in MAC_LINES] + [(read_round, "bf16 rne 0", *row) for row in ROUND_LINES],
)
def test_line_wrong(vectors, read, legal, line, rule):
    path = vectors(f"{legal}\n# comment\n{line}\n")
    with pytest.raises(VectorError, match=re.escape(f"{path}:3: {rule}")):
        read(path)


@pytest.mark.parametrize("read", (read_mac, read_round))
@pytest.mark.parametrize("text", ("", "\n \n", "# nothing\n"))
def test_empty_file_wrong(vectors, read, text):
    with pytest.raises(VectorError, match="must hold at least one case, this one is empty"):
        read(vectors(text))


def test_file_wrong(tmp_path):
    with pytest.raises(VectorError, match="must be readable, this one is not: No such file"):
        read_mac(tmp_path / "none.txt")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(VectorError, match="must be UTF-8 text"):
        read_mac(binary)
