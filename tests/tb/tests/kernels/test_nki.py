"""TEST=nki and `run_nki`: examples of both dialects against numpy."""

import re
from math import erf
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki import run_nki
from neuroncore_rtl.frontends.nki.runtime.raised import report_errors
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.tests.kernels.nki import TEST

RNG = np.random.default_rng(1)
LANES = {"tiny": 4, "small": 16}
NEWER, OLDER, LOOPS = (f"frontends/nki/examples/{name}.py:" for name in ("newer", "older", "loops"))


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(p):
    q, k, v = normal(p, 3 * p), normal(p, 3 * p), normal(3 * p, p)
    scores = np.where(np.tri(3 * p) > 0, q.T @ k / np.sqrt(p), -1e9)
    return [(one, "bfloat16") for one in (q, k, v)], [softmax(scores) @ v], 0.06


def normalised(p):
    x, gamma = normal(2 * p + 1, 60), normal(1, 60)
    centred = x - x.mean(1, keepdims=True)
    return [x, gamma], [centred / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma], 1e-5


def decayed_sums(p):
    x, decay = normal(p, 40), np.abs(normal(p, 1)) / 2
    sums = np.zeros((p, 40), np.float32)
    for i in range(40):
        sums[:, i] = x[:, i] + (decay[:, 0] * sums[:, i - 1] if i else 0)
    places = np.argsort(-sums, axis=1, kind="stable")[:, :8]
    return [x, decay], [sums, np.take_along_axis(sums, places, 1), places], 1e-5


def gated(p):
    x = normal(p, 24)
    return [x], [2 * np.where(x > 0.5, x, np.arange(24) / 24).T], 1e-6


def softmax_rows(p):
    x = normal(2 * p + 3, 30)
    return [x], [softmax(x)], 1e-6


def added_on_grid(p):
    a, b = normal(3 * p, 20), normal(3 * p, 20)
    return [a, b], [a + b], 0


def product(p):
    x, w, bias = normal(p - 1, 3 * p), normal(3 * p, p) / np.float32(4), normal(p, 1)
    sums = (x @ w).T + bias
    return [x, w, bias], [sums * (1 + np.vectorize(erf)(sums / np.sqrt(2))) / 2], 1e-5


def statistics(p):
    x = normal(p, 40)
    return [x], [np.stack([x.mean(1), x.var(1), np.abs(x).max(1)], 1), x[:, ::2]], 1e-6


def expert_rows(p):
    x, weights, tokens = normal(3 * p, p), normal(3, p, p), RNG.permutation(3 * p)[:p, np.newaxis].astype(np.int32)
    tokens[[1, p - 1], 0] = -1, 3 * p
    expected, kept = np.zeros((3 * p, p), np.float32), [row for row in tokens[:, 0] if 0 <= row < 3 * p]
    expected[kept] = x[kept] @ weights[2]
    return [x, weights, tokens, np.array([[2]], np.int32)], [expected], 1e-5


def exponentials_of_some(p):
    x = normal(4 * p, 12)
    return [x, np.array([[3]], np.int32)], [np.where(np.arange(4 * p)[:, None] < 3 * p, np.exp(x), 1)], 1e-5


def dominant(p):
    a = normal(p, p) + 2
    a += a.T
    v, steps, moved = np.ones((p, 1)), 0, 1
    while moved > 1e-3:
        last, v, steps = v, a @ v / np.linalg.norm(a @ v), steps + 1
        moved = np.linalg.norm(v - last)
    return [a], [v, np.array([[steps]])], 1e-5


def looked_up(p):
    x, places = normal(p, 20), RNG.integers(0, 20, (p, 5)).astype(np.int32)
    return [x, places, np.array([[13]], np.int32)], [np.take_along_axis(x, places, 1), x[:, 13:17]], 0


def shared_places(p):
    x, places = normal(p, 30), RNG.integers(0, 29, (p, 3)).astype(np.int32)
    chosen = places.T.reshape(3, 16)
    return [x, places], [np.stack([x[:, chosen], x[:, chosen + 1]], -1)], 0


def added_rows(p):
    table, x, rows = normal(2 * p + 1, 9), normal(p, 9), RNG.permutation(2 * p + 1)[:p, np.newaxis].astype(np.int32)
    rows[2] = -7
    expected = table.copy()
    for row, term in zip(rows[:, 0], x, strict=True):
        if row >= 0:
            expected[row] += term
    return [table, x, rows], [expected], 0


def repeated(p):
    values = RNG.integers(0, 4, (1, 7)).astype(np.int32)
    same = values.T == values
    before = np.where(same & np.tri(7, k=-1, dtype=bool), np.arange(7), -1).max(1)
    return [values, 5], [same.sum(1)[np.newaxis], before[np.newaxis]], 0


EXAMPLES = [*((NEWER, make) for make in (attention, normalised, decayed_sums, gated, expert_rows, looked_up)),
            *((OLDER, make) for make in (softmax_rows, added_on_grid, product, statistics)),
            *((OLDER, make) for make in (added_rows, repeated)),
            *((LOOPS, make) for make in (exponentials_of_some, dominant))]  # fmt: skip


@pytest.mark.parametrize("preset, file, make", [*((preset, *one) for preset in LANES for one in EXAMPLES),
                                                ("small", NEWER, shared_places)])  # fmt: skip
def test_examples_on_golden(file, make, preset):
    args, expected, most = make(LANES[preset])
    done = run_nki(f"{file}{make.__name__}", *args, preset=preset, on="golden")
    for found, wanted in zip(done.outputs, expected, strict=True):
        assert found.shape == wanted.shape and np.abs(found - wanted).max() <= most


@pytest.mark.parametrize("file, make", [(NEWER, gated), (OLDER, statistics), (NEWER, expert_rows), (OLDER, repeated)])
def test_examples_on_the_rtl(file, make, tmp_path):
    args, expected, most = make(4)
    with recording_in(tmp_path):
        done = run_nki(f"{file}{make.__name__}", *args, preset="tiny")
    assert done.run.bit_exact and np.abs(done.outputs[0] - expected[0]).max() <= most
    assert {Path(line.file).name for line in done.run.lines} == {f"{Path(file).stem}.py"}


@pytest.mark.slow
@pytest.mark.parametrize("file, make", [*EXAMPLES, (NEWER, shared_places)])
def test_all_examples_on_the_rtl(file, make, tmp_path):
    args, _, _ = make(16)
    with recording_in(tmp_path):
        assert run_nki(f"{file}{make.__name__}", *args, preset="small").run.bit_exact


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
        ([f"KERNEL={NEWER}f"], "KERNEL must be a function of newer.py, attention, .*, not 'f'"),
    ],
)
def test_wrong_words_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        TEST.run(TEST.settings(["TARGET=golden", *words]))


RAISING = """
import nki
import nki.isa as nisa
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
def ends(x):
    pass


@nki.jit
def stops(x):
    nisa.memset(dst=x, valeu=1.0)


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
            ["the kernel raises ValueError", "Traceback.*", ".*line 14, in raises", ".*raise.*", "ValueError: of.*"],
        ),
        (
            "looks",
            [".*IndexError", "Traceback.*", ".*line 19, in looks", ".*", ".*line 8, in halved", ".*", "IndexError.*"],
        ),
        ("misspells", [r"nl.softmaxx is not a name of the interface .*; there is softmax \(raising.py:24\)"]),
        ("ends", [r"ends must return tensors in HBM, .*, not nothing \(raising.py:27\)"]),
        ("forgets", [r"shared_hbm@39 must be written before forgets returns it \(raising.py:37\)"]),
        ("stops", [r"nisa.memset\(.*\): got an unexpected keyword argument 'valeu' \(raising.py:34\)"]),
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
