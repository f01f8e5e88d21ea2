"""Files of the suites FPgen and TestFloat."""

import numpy as np
import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.stimulus import scalar_suites

TITLES = "\N{BYTE ORDER MARK}Floating point tests: a title\n------\n\n"
LINES = {
    "b32*+ =0 +1.000000P0 -1.000001P1 +0.000001P-126 -> -1.000001P1 x": (
        "multiply-add",
        (0x3F800000, 0xC0000001, 0x00000001, 0xC0000001),
    ),
    "b32+ =0 i +Inf -Inf -> Q i": ("add", (0x7F800000, 0xFF800000, 0x7FC00000)),
    "b32- =0 x +Zero S -> Q": ("subtract", (0x00000000, 0x7F800001, 0x7FC00000)),
    "b32* =0 +1.7FFFFFP127 -Zero -> -Zero": ("multiply", (0x7F7FFFFF, 0x80000000, 0x80000000)),
    "b32/ =0 o +1.000000P-126 +1.000000P1 -> +0.400000P-126": ("divide", (0x00800000, 0x40000000, 0x00400000)),
}
LEFT_OUT = {
    "b32+ > +1.000000P0 +1.000000P-60 -> +1.000001P0 x": "another rounding",
    "b32* =0 xu +1.000000P-126 +1.000000P-20 -> +1.000000P46 u": "result of a trap",
    "b32+ =0 i S +1.000000P0 -> # i": "result of a trap",
    "b32V =0 +1.000000P2 -> +1.000000P1": "square roots",
    "d64+ =0 +1e0 +1e0 -> +2e0": "another format than binary32",
}


def test_fpgen_reads_what_there_is_of_the_machine(tmp_path):
    path = tmp_path / "sample.fptest"
    path.write_text(TITLES + "\n".join([*LINES, *LEFT_OUT]) + "\n")
    cases, left_out = scalar_suites.read_fpgen([path])
    found = {one.operation: (*(int(word[0]) for word in one.operands), int(one.expected[0])) for one in cases}
    assert found == dict(LINES.values())
    assert left_out == {why: [*LEFT_OUT.values()].count(why) for why in LEFT_OUT.values()}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b32+ =0 +1.800000P0 +Zero -> +Zero", "a number must be such as .*, not '[+]1.800000P0'"),
        ("b32+ =0 +0.000001P-125 +Zero -> +Zero", "a number must be representable in binary32, not '[+]0.000001P-125'"),
        ("b32+ =0 +1.000000P128 +Zero -> +Zero", "a number must be representable in binary32, not '[+]1.000000P128'"),
        ("b32+ =0 +Zero +Zero", "a case must have operands, -> and a result"),
    ],
)
def test_fpgen_names_the_line_that_is_none(tmp_path, line, message):
    path = tmp_path / "sample.fptest"
    path.write_text(f"{TITLES}{line}\n")
    with pytest.raises(UsageError, match=f"sample.fptest:4: {message}"):
        [*scalar_suites.read_fpgen([path]).cases]


def program(directory, body):
    path = directory / "testfloat_gen"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_testfloat_is_told_seed_and_rounding(tmp_path):
    body = 'case "$*" in "-seed 7 -rmin f32_roundToInt") echo "BFC00000 C0000000 00";; *) exit 1; esac'
    cases, left_out = scalar_suites.read_testfloat(program(tmp_path, body), 7)
    [one] = cases
    assert (one.operation, one.operands[0].tolist(), one.expected.tolist()) == ("floor", [0xBFC00000], [0xC0000000])
    assert one.origin(0) == "f32_roundToInt-rmin, line 1"
    assert len(left_out) == 18 and left_out["f32_add: no case of it"] == 1


def test_testfloat_reads_files_and_leaves_invalid_conversions_out(tmp_path):
    (tmp_path / "f32_to_i32.txt").write_text("3FC00000 00000002 01\n7FC00000 80000000 10\n")
    (tmp_path / "f32_lt.txt").write_text("3F800000 40000000 1 00\n7FC00000 40000000 0 10\n")
    cases, left_out = scalar_suites.read_testfloat(tmp_path, 1)
    found = {one.operation: one for one in cases}
    assert found["fp32 to int32"].expected.tolist() == [2]
    assert found["less"].expected.tolist() == [0x3F800000, 0]
    np.testing.assert_array_equal(found["less"].operands, [[0x3F800000, 0x7FC00000], [0x40000000, 0x40000000]])
    assert sum(left_out.values()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3F800000 40000000\n", "each must have operands, a result and exceptions"),
        ("3F800000 40000000 0000000G 00\n", "each must have hexadecimal numbers of .* separated by blanks"),
        ("3F800000 40000000 00000000 00\n3F800000\n", "each must have operands"),
    ],
)
def test_testfloat_names_what_is_none_of_its_output(tmp_path, text, message):
    (tmp_path / "f32_add.txt").write_text(text)
    with pytest.raises(UsageError, match=f"f32_add, lines from 1: {message}"):
        [*scalar_suites.read_testfloat(tmp_path, 1).cases]


def test_a_program_that_breaks_off_is_not_taken_for_one_that_has_ended(tmp_path):
    path = program(tmp_path, 'echo "3F800000 40000000 40400000 00"; exit 3')
    with pytest.raises(UsageError, match="must print its cases and end, but ended with 3 after 1 lines"):
        [*scalar_suites.read_testfloat(path, 1).cases]


def test_a_file_that_cannot_be_run_is_refused(tmp_path):
    path = tmp_path / "testfloat_gen"
    path.write_text("text")
    with pytest.raises(UsageError, match="FROM must be a program that can be run"):
        [*scalar_suites.read_testfloat(path, 1).cases]
