"""Pictures of the documents."""

from xml.etree import ElementTree

import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.view.diagram import Diagram
from neuroncore_rtl.spec.isa.record import HEADER_FIELDS
from neuroncore_rtl.tb.cli.pictures import PICTURES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_up_to_date(name):
    drawn = PICTURES[name]().svg()
    written = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
    assert drawn == written, "python -m neuroncore_rtl.tb.cli.pictures writes them again"
    root = ElementTree.fromstring(drawn)
    _, _, width, height = map(float, root.get("viewBox").split())
    boxes = root.findall(f"{SVG}rect")
    assert len(boxes) > 4
    for box in boxes:
        x, y, w, h = (float(box.get(key, "0")) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
    assert all(0 < float(text.get("y")) < height for text in root.findall(f"{SVG}text"))


def test_the_record_has_a_box_for_each_field_of_the_header():
    root = ElementTree.fromstring(PICTURES["record"]().svg())
    rows = [box for box in root.findall(f"{SVG}rect") if box.get("y") == "120"]
    assert len(rows) == len(HEADER_FIELDS)
    assert sum(float(box.get("width")) for box in rows) == pytest.approx(972, abs=0.1)


def test_an_arrow_turns_a_corner_and_text_is_escaped():
    diagram = Diagram(100, 50, "a < b")
    diagram.arrow((0, 0), (10, 20), label="x & y", both=True)
    text = diagram.svg()
    assert 'd="M0 0H10L10 20"' in text and "marker-start" in text and "x &amp; y" in text and "a &lt; b" in text
