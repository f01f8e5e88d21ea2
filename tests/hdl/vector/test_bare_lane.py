"""A vector lane without its optional units."""

import re

from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.hdl.verilog.text import convert


def test_nothing_is_chosen_by_what_never_happens():
    """Verilator refuses cases of which one can never be taken for its overlap with the others."""
    text = convert(VectorLane(6, ()), "lane", None)
    assert "casez" in text and not re.search(r"casez \(\{[^}]*\d'h0", text)
