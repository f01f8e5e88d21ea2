"""The animation of the array: numpy computes every number again."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.array_motion import _short, main, read_motion, write_motion
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.cli.array_picture import A, B, draw_product, record_product

TINY = PRESETS["tiny"]
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
    draw_product(target, still)
    return target, still


def test_pictures_of_the_documents_are_up_to_date(pictures):
    for drawn in pictures:
        written = ROOT / "docs" / "pictures" / drawn.name
        assert drawn.read_text() == written.read_text(), "python -m neuroncore_rtl.tb.cli.array_picture writes it again"


def test_the_animation_shows_weights_operands_and_sums(pictures):
    """In each cycle row r holds column r of A and has the operand that row 0 had r cycles earlier."""
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


@pytest.mark.parametrize("latency, columns", [(1, 4), (2, 6)])
def test_every_partial_sum_is_numpys(tmp_path, rng, latency, columns):
    """Two tiles of K, the second with an absent row; a slower MAC; two tiles of columns."""
    config = replace(TINY, mac_latency=latency, columns=columns)
    a, b = (rng.integers(1, 8, shape) for shape in ((columns, 7), (7, 9)))
    vcd, product = record_product(a, b, config, tmp_path)
    assert (product == a @ b).all()
    motion = read_motion(vcd, config)
    expected = [np.cumsum(a.T[k, :, None] * b[k, None, :], axis=0) for k in (slice(0, 4), slice(4, 7))]
    expected[1] = np.concatenate([expected[1], expected[1][-1:]])
    for row in range(4):
        for column in range(columns):
            elements = [frame.elements[row][column] for frame in motion.frames]
            totals = [float(element.total) for element in elements if element.total is not None]
            assert totals == [*expected[0][row, column], *expected[1][row, column]]
    last = [frame.elements[3][0].operand for frame in motion.frames]
    assert last.count("absent") == 9 and len([one for one in last if one]) == 18
    assert any(element.weight and element.shadow for frame in motion.frames for element in frame.elements[0])
    assert motion.cycles > motion.frames[-1].cycle > motion.frames[0].cycle > 1
    target, still = tmp_path / "motion.svg", tmp_path / "still.svg"
    write_motion(vcd, config, target, still, cycle=motion.frames[2].cycle)
    assert list(numbers(still, "sum")) == [motion.frames[2].cycle]
    with pytest.raises(UsageError, match=f"^cycle must be one from {motion.frames[0].cycle} to .*, not 0$"):
        write_motion(vcd, config, target, cycle=0)


def test_what_cannot_be_shown_is_refused(tmp_path, capsys):
    vcd = tmp_path / "a.vcd"
    vcd.write_text("$scope module tensor $end\n$var wire 1 a clk $end\n$upscope $end\n$enddefinitions $end\n#0\n1a\n")
    with pytest.raises(UsageError, match="^the array of the picture must have at most 8 x 8 elements, not 16 x 16$"):
        read_motion(vcd, PRESETS["small"])
    with pytest.raises(UsageError, match="with all 4 x 4 processing elements: TARGET=engine SIM=icarus"):
        read_motion(vcd, TINY)
    assert main([str(vcd)]) == 2
    assert main([str(vcd), str(tmp_path / "a.svg"), "tiny"]) == 1
    assert "processing elements" in capsys.readouterr().err


def test_numbers_are_rounded_to_fit():
    texts = {"12": "12", "-0.0236": "-0.02", "0.66406": "0.664", "-123.75": "-124", "-1234567": "-1e+06", "nan": "nan"}
    assert {number: _short(number) for number in texts} == texts
    assert _short("absent") == "–"
