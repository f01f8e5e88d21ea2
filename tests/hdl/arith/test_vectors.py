import re

import pytest

from neuroncore_rtl.spec.formats import BF16, FORMATS, FP16, INT8, MAC_FORMATS, TF32
from neuroncore_rtl.tb.stimulus.vectors import VectorError, read_mac, read_round


def test_mac_lines(vectors):
    cases = read_mac(
        vectors(
            "# a comment\n"
            "bf16 3f80 4000 00000000 40000000\n"
            "\n"
            "  tf32\t0x3F800000   C0002000 0 # no result expected\n"
            "int8 80 7f 0X4b800000 4b7fc080\r\n"
        )
    )
    assert cases.lines.tolist() == [2, 4, 5]
    assert cases.formats.tolist() == [BF16.code, TF32.code, INT8.code]
    assert cases.operands["x"].tolist() == [0x3F80, 0x3F800000, 0x80]
    assert cases.operands["w"].tolist() == [0x4000, 0xC0002000, 0x7F]
    assert cases.operands["acc"].tolist() == [0, 0, 0x4B800000]
    assert cases.has_expected.tolist() == [True, False, True]
    assert cases.expected.tolist() == [0x40000000, 0, 0x4B7FC080]


def test_round_lines(vectors):
    cases = read_round(
        vectors(
            "bf16 sr 3f808000 80000000 3f81\n"
            "fp16 sr 3f808000 0000ffff\n"
            "int8 rne c3000000 80\n"
            "fp16 rne 3f808000 # nearest even has no random word\n"
        )
    )
    assert cases.formats.tolist() == [BF16.code, FP16.code, INT8.code, FP16.code]
    assert cases.operands["stochastic"].tolist() == [1, 1, 0, 0]
    assert cases.operands["value"].tolist() == [0x3F808000, 0x3F808000, 0xC3000000, 0x3F808000]
    assert cases.operands["random"].tolist() == [0x80000000, 0xFFFF, 0, 0]
    assert cases.has_expected.tolist() == [True, False, True, False]
    assert cases.expected.tolist() == [0x3F81, 0, 0x80, 0]


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
