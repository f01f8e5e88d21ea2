"""TEST=nki: reports, profiles, lists, references, and errors of kernels and of words."""

import re
from pathlib import Path

import pytest

from neuroncore_rtl.frontends.nki.runtime.raised import report_errors
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.tests.kernels.nki import TEST

NEWER, OLDER = (f"frontends/nki/examples/{name}.py:" for name in ("newer", "older"))


def test_the_report_has_the_lines_of_the_kernel(tmp_path):
    reference = tmp_path / "reference.py"
    reference.write_text(
        "import numpy as np\ndef softmax(x):\n    e = np.exp(x)\n    return e / e.sum(1, keepdims=True)\n"
    )
    report = TEST.run(TEST.settings([f"KERNEL={OLDER}softmax_rows", "INPUTS=x=20x24:bf16", "TARGET=model",
                                       f"REFERENCE={reference}:softmax"]))  # fmt: skip
    assert report.modelled and report.cycles > 500 and report.exit_status == 0
    assert report.rows["against_numpy"]["output_0"]["of_the_largest"] < 0.02
    lines = report.rows["lines"]
    assert all(row["line"].startswith("older.py:") for row in lines)
    # Two tiles, each a load, a maximum, a difference, an exponential, a sum, a quotient and a store; zeros in one.
    assert sum(row["records"] for row in lines) == report.rows["records"] == 15
    assert report.rows["inserted"] == [{"why": "zeros beside a mask", "instructions": 1}]
    assert max(row["cycles"] for row in lines) < report.cycles
    # Published cycles for two tiles: a maximum and a sum of 24 BF16 each; for each other instruction the minimum of 64.
    assert sum(row["published"] for row in lines) == 4 * 12 + (1 + 3 * 2) * 64
    assert {row["formula"] for row in lines} == {"max(64, N / 2)", "N / 2; max(64, N)"}


def test_a_profile_says_where_the_cycles_went(tmp_path):
    words = [f"KERNEL={OLDER}softmax_rows", "INPUTS=x=20x24:bf16", "TARGET=model", "PROFILE=1"]
    with recording_in(tmp_path):
        report = TEST.run(TEST.settings(words))
    assert sum(report.rows["cycles_of_vector"].values()) == report.cycles
    assert (Path(report.rows["profile"]) / "timeline.json").is_file()


def test_kernels_and_calls_are_listed(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("import nki\n@nki.jit\ndef mine(x, y=2):\n    return x\n")
    report = TEST.run(TEST.settings([f"KERNEL={file}:mine", "LIST=1"]))
    assert {"kernel": f"{file}:mine", "arguments": "(x, y=2)"} in report.rows["kernels"]
    assert {"kernel": f"{NEWER}attention", "arguments": "(q, k, v, causal=True)"} in report.rows["kernels"]
    how = {(module, row["call"]): row["how"] for module in ("nki_isa", "nki_language") for row in report.rows[module]}
    assert (how["nki_isa", "nc_matmul"], how["nki_language", "exp"]) == ("expanded", "exact")
    assert report.exit_status == 0


@pytest.mark.parametrize(
    "words, message",
    [
        (["INPUTS=q"], "INPUTS must be words name=value, each name once, not 'q'"),
        (["INPUTS=q=4x4:float8_e4m3fn"], "dtype must be one that the machine has .*, not float8_e4m3fn"),
        (["INPUTS=q=4x4:fp99"], "dtype must be one of .*, not 'fp99'"),
        (["INPUTS=q=none.npy"], "a file must exist"),
        (["INPUTS=q=1048576x1048576x3:fp32"], "q=.*: an array must fit into the host's memory"),
        (["INPUTS=q=what"], "a value must be a shape with a type"),
        (["INPUTS=q=16x16:bf16"], "arguments must fit attention.*missing a required argument: 'k'"),
        (["GRID=2y3"], "GRID must be counts such as 4 or 2x8, not '2y3'"),
        (["KERNEL=none.py:f"], "KERNEL must name an existing file"),
        (["KERNEL=Makefile:f"], r"KERNEL must be Python, not .*/Makefile:\d+: unterminated string literal"),
        (["KERNEL=docs/seeds.png:f"], "KERNEL must be Python, not .*/docs/seeds.png: .* can't decode byte"),
        ([f"KERNEL={NEWER}f"], "KERNEL must be a function of newer.py, attention, .*, not 'f'"),
    ],
)
def test_wrong_words_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        TEST.run(TEST.settings(["TARGET=golden", *words]))


RAISING = """
import nki
import nki.language as nl


def halved(n):
    return [][n]


@nki.jit
def raises(x):
    print("printed")
    raise ValueError("of its own")


@nki.jit
def looks(x):
    return halved(3)


@nki.jit
def misspells(x):
    return nl.softmaxx(x)


@nki.jit
def forgets(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    return out
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "raises",
            ["the kernel raises ValueError", "Traceback.*", ".*line 13, in raises", ".*raise.*", "ValueError: of.*"],
        ),
        (
            "looks",
            [".*IndexError", "Traceback.*", ".*line 18, in looks", ".*", ".*line 7, in halved", ".*", "IndexError.*"],
        ),
        ("misspells", [r"nl.softmaxx is not a name of the interface .*; there is softmax \(raising.py:23\)"]),
        ("forgets", [r"shared_hbm@28 must be written before forgets returns it \(raising.py:26\)"]),
    ],
)
def test_what_a_kernel_raises_is_told_by_its_own_lines(name, lines, tmp_path, capsys):
    (tmp_path / "raising.py").write_text(RAISING)
    with pytest.raises(UsageError) as told:
        TEST.run(TEST.settings(KERNEL=f"{tmp_path}/raising.py:{name}", INPUTS="x=4x8:fp32", PRESET="tiny"))
    found = [line for line in str(told.value).splitlines() if set(line) - set(" ^~")]
    assert len(found) == len(lines) and all(map(re.fullmatch, lines, found)), found
    assert capsys.readouterr().out == ("printed\n" if name == "raises" else "")


DOUBLED = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def doubled(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.copy, data=tile, scale=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def twice(x):
    return 2 * x
"""


def test_a_reference_may_be_in_the_file_of_the_kernel_and_is_looked_for_before_anything_runs(tmp_path, monkeypatch):
    file = tmp_path / "doubled.py"
    file.write_text(DOUBLED)
    words = {"KERNEL": f"{file}:doubled", "INPUTS": "x=4x8:fp32", "TARGET": "golden"}
    report = TEST.run(TEST.settings(REFERENCE=f"{file}:twice", **words))
    assert report.rows["against_numpy"]["output_0"]["largest_error"] == 0
    monkeypatch.setattr("neuroncore_rtl.tb.tests.kernels.nki.recorded", lambda *arguments: pytest.fail("it ran"))
    with pytest.raises(UsageError, match="REFERENCE must be a function of .*doubled.py, doubled, twice, not 'thrice'"):
        TEST.run(TEST.settings(REFERENCE=f"{file}:thrice", **words))


def test_a_mistake_of_this_project_stays_a_traceback(monkeypatch):
    def fail(*arguments):
        raise AttributeError("of our own")

    monkeypatch.setattr("neuroncore_rtl.frontends.nki.runtime.raised._is_kernels", lambda frame: False)
    with pytest.raises(AttributeError, match="of our own"), report_errors():
        fail()
