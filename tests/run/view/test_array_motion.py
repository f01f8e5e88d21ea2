"""The animation of the array: numpy computes every number again."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.targets import Rtl
from neuroncore_rtl.run.view.array_motion import _short, draw_motion
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.cli.array_picture import A, B, run_product
from neuroncore_rtl.tb.cli.matrices import encode_matrix
from neuroncore_rtl.tb.tests.kernels.products import counters_of, gathered, product_jobs
from neuroncore_rtl.tb.tests.scenario import run_jobs

TINY = PRESETS["tiny"]
GONE = (None, "absent")
SVG = "{http://www.w3.org/2000/svg}"


def numbers(svg: Path, style: str) -> dict[int, list[float]]:
    groups = ElementTree.parse(svg).getroot().findall(f"{SVG}g")
    assert all(group.get("id").startswith("cycle") for group in groups)
    return {
        int(group.get("id").removeprefix("cycle")): [
            float(text.text.split()[-1]) for text in group.findall(f"{SVG}text") if text.get("class") == style
        ]
        for group in groups
    }


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("array")
    target, still = folder / "array.svg", folder / "array_cycle.svg"
    motion = run_product(encode_matrix(A, BF16), encode_matrix(B, BF16), BF16, TINY).motion
    target.write_text(draw_motion(motion))
    still.write_text(draw_motion(motion, motion.busiest))
    return target, still


def test_pictures_of_the_documents_are_up_to_date(pictures):
    for drawn in pictures:
        written = ROOT / "docs" / "pictures" / drawn.name
        assert drawn.read_text() == written.read_text(), "python -m neuroncore_rtl.tb.cli.array_picture writes it again"


def test_the_animation_shows_weights_operands_and_sums(pictures):
    """Row r of the array holds column r of A, and has the moving operand that row 0 had r cycles earlier."""
    target, still = pictures
    weights, operands, sums = (numbers(target, style) for style in ("weight", "operand", "sum"))
    prefix = np.cumsum(A.T[:, :, None] * B[:, None, :], axis=0)  # row of the array, row of A, column of B
    first = next(cycle for cycle, shown in operands.items() if shown)
    for cycle in operands:
        busy = [row for row in range(4) if 0 <= cycle - first - row < 4]
        assert operands[cycle] == [B[row, cycle - first - row] for row in busy for _ in range(4)]
        assert weights[cycle] == [A.T[row, column] for row in range(4) if row <= cycle - first for column in range(4)]
        above = [prefix[row, column, cycle - first - row] for row in busy for column in range(4)]
        gone = max(0, min(4, cycle - first - 3))
        below = [(A @ B)[column, place] for column in range(4) for place in reversed(range(gone))]
        assert sums[cycle] == above + below
    assert sums[max(sums)] == [(A @ B)[column, place] for column in range(4) for place in (3, 2, 1, 0)]
    ((chosen, shown),) = numbers(still, "sum").items()
    assert shown == sums[chosen] and len(operands[chosen]) == 16


def test_every_partial_sum_is_numpys_also_with_late_stages_and_narrow_operands(rng):
    config = replace(TINY, columns=6, significand_bits=8, mac_latency=2, port_latency=1, edge_latency=3)
    columns, latency = config.columns, config.mac_latency
    a, b = (rng.integers(1, 8, shape) for shape in ((columns, 7), (7, 9)))
    drawn = run_product(encode_matrix(a, BF16), encode_matrix(b, BF16), BF16, config)
    assert (drawn.words.view(np.float32) == a @ b).all() and not drawn.transposed
    motion = drawn.motion
    expected = [np.cumsum(a.T[k, :, None] * b[k, None, :], axis=0) for k in (slice(0, 4), slice(4, 7))]
    expected[1] = np.concatenate([expected[1], expected[1][-1:]])
    for row in range(4):
        for column in range(columns):
            elements = [frame.elements[row][column] for frame in motion.frames]
            totals = [float(element.total) for element in elements if element.total is not None]
            assert totals == [*expected[0][row, column], *expected[1][row, column]]
        entered = [float(frame.entering[row][0]) for frame in motion.frames if frame.entering[row][0] not in GONE]
        assert entered == [*b[row], *(b[4 + row] if row < 3 else ())]
    last = [frame.elements[3][0].operand for frame in motion.frames]
    assert last.count("absent") == 9 and len([one for one in last if one]) == 18
    assert any(element.weight and element.shadow for frame in motion.frames for element in frame.elements[0])
    weights = {
        tuple(float(element.weight) for element in frame.elements[0] if element.weight) for frame in motion.frames
    }
    assert {tuple(a[:, 0]), tuple(a[:, 4])} <= weights
    assert motion.cycles > motion.frames[-1].cycle > motion.frames[0].cycle > latency


def test_the_cycles_are_those_of_the_harness():
    """Amaranth's simulator and the harness of Icarus offer instructions and read PSUM in the same cycles."""
    m, k, n = 9, 7, 8
    a, b = encode_matrix(np.ones((m, k)), BF16), encode_matrix(np.ones((k, n)), BF16)
    results = [*run_jobs(product_jobs(a, b, BF16, TINY), Rtl(sim="icarus"))]
    drawn = run_product(a, b, BF16, TINY)
    assert drawn.motion.cycles == counters_of(results)["cycles"]
    assert (drawn.words == gathered(results, (m, n))).all()


def test_what_cannot_be_shown_is_refused():
    ones = encode_matrix(np.ones((4, 64)), BF16)
    with pytest.raises(UsageError, match=r"^the array of a picture must have at most 8 x 8 elements, not 16 x 16"):
        run_product(ones, ones.T, BF16, PRESETS["small"])
    with pytest.raises(UsageError, match=r"must move at most 100 columns through the array, not 4096:"):
        run_product(np.repeat(ones, 4, 0), ones.T.repeat(16, 1), BF16, replace(TINY, psum_words=64))
    with pytest.raises(UsageError, match=r"^the product must take at most 120 cycles to be shown, not \d+$"):
        run_product(ones[:1], ones.T[:, :1], BF16, replace(TINY, rows=2, add_latency=5))


def test_numbers_are_rounded_to_fit():
    texts = {"12": "12", "-0.0236": "-0.02", "0.66406": "0.664", "-123.75": "-124", "-1234567": "-1e+06", "nan": "nan"}
    assert {number: _short(number) for number in texts} == texts
    assert _short("absent") == "–"
