import re

from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.hdl.verilog.text import convert


def test_no_case_is_unreachable():
    # Verilator refuses a case that can never be selected because it overlaps with others.
    text = convert(VectorLane(6, ()), "lane", None)
    assert "casez" in text and not re.search(r"casez \(\{[^}]*\d'h0", text)
