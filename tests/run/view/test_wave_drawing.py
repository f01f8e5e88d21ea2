"""Drawings of waveforms."""

import enum
from pathlib import Path
from xml.etree import ElementTree

import pytest
from vcd import VCDWriter

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.view.wave_drawing import draw_waves
from neuroncore_rtl.run.view.wave_groups import Trace
from neuroncore_rtl.tb.cli.wave_pictures import draw_core, draw_engine, draw_first_screen
from tests.hdl.simulation import slow

SVG = "{http://www.w3.org/2000/svg}"

Kind = enum.Enum("Kind", {"idle": 0, "busy": 5})

GROUPS = {
    "bits": [Trace("go", "go", "bin")],
    "words": [
        Trace("word", "decimal", "dec"),
        Trace("word", "hexadecimal", "hex"),
        Trace("word", "name", Kind),
        Trace("sum", "sum", "fp32"),
    ],
}

VALUES = {"go": [0, 1, 1, 0, 0], "word": ["x", 5, 10, 10, 0], "sum": ["x", "x", *3 * [0x3FC00000]]}
"""The values in each cycle."""


def recorded(folder: Path) -> Path:
    path = folder / "a.vcd"
    with path.open("w") as file, VCDWriter(file) as writer:
        widths = {"clk": 1, "go": 1, "word": 4, "sum": 32}
        wires = {name: writer.register_var("top", name, "wire", bits) for name, bits in widths.items()}
        for cycle in range(5):
            for name, values in VALUES.items():
                writer.change(wires[name], 10 * cycle, values[cycle])
            writer.change(wires["clk"], 10 * cycle, 0)
            writer.change(wires["clk"], 10 * cycle + 5, 1)
    return path


def texts(drawing: str) -> list[str]:
    return [text.text for text in ElementTree.fromstring(drawing).findall(f"{SVG}text")]


def test_a_drawing_shows_bits_words_names_and_numbers(tmp_path):
    drawing = draw_waves(recorded(tmp_path), "top", GROUPS)
    assert texts(drawing)[:6] == ["cycle", "1", "2", "3", "4", "5"]
    assert texts(drawing)[6:] == [
        "bits", "go", "words", "decimal", "5", "10", "0", "hexadecimal", "5", "a", "0", "name", "busy", "a", "idle",
        "sum", "1.5",
    ]  # fmt: skip
    root = ElementTree.fromstring(drawing)
    # A box per value, and one for each piece that is unknown: 1 cycle of the word, 2 of the sum.
    assert len([box for box in root.findall(f"{SVG}rect") if box.get("class") == "word"]) == 3 * 3 + 1
    unknown = [float(box.get("width")) for box in root.findall(f"{SVG}rect") if box.get("class") == "unknown"]
    pitch = unknown[0]
    assert unknown == pytest.approx([pitch, pitch, pitch, 2 * pitch], rel=1e-3)
    (bit,) = [path.get("d") for path in root.findall(f"{SVG}path") if path.get("class") == "bit"]
    low, high = (float(bit.split("V")[n].split("H")[0]) for n in (2, 1))
    assert low - high == 15 and bit.count("V") == 2


def test_cycles_are_counted_from_the_origin(tmp_path):
    vcd = recorded(tmp_path)
    drawing = draw_waves(vcd, "top", {"words": [Trace("word", "word", "dec")]}, range(1, 4), "go")
    assert texts(drawing) == ["cycle", "1", "2", "3", "words", "word", "5", "10"]
    drawing = draw_waves(vcd, "top", {"words": [Trace("word", "word", "dec")]}, range(0, 5), "go")
    assert texts(drawing)[:6] == ["cycle", "0", "1", "2", "3", "4"]
    for cycles in (range(0, 6), range(-1, 2), range(3, 3), range(1, 4, 2)):
        with pytest.raises(ValueError, match="^cycles must be a range within 0 to 4, not range"):
            draw_waves(vcd, "top", GROUPS, cycles, "go")


@pytest.mark.parametrize(
    "name, draw", [("array", draw_first_screen), ("engine", draw_engine), *slow(("core", draw_core))]
)
def test_the_picture_is_up_to_date(tmp_path, name, draw):
    written = (ROOT / "docs" / "pictures" / f"waves_{name}.svg").read_text()
    assert draw(tmp_path) == written, "python -m neuroncore_rtl.tb.cli.wave_pictures writes it again"
