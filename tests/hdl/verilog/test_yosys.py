import pytest
from amaranth._toolchain.yosys import YosysError, find_yosys

import neuroncore_rtl
from neuroncore_rtl.hdl.verilog.yosys import run_yosys

SCRIPT = "read_rtlil <<rtlil\nmodule \\m\nwire width 3 output 1 \\o\nconnect \\o 3'101\nend\nrtlil\nwrite_verilog\n"


@pytest.mark.parametrize("found", [None, b"of another processor"])
def test_what_it_prints_is_that_of_amaranth_s_and_the_second_start_uses_a_file(found, tmp_path, monkeypatch):
    monkeypatch.setattr(neuroncore_rtl, "SIM_BUILD", tmp_path)
    expected = find_yosys(lambda version: True).run(["-q", "-"], SCRIPT, ignore_warnings=True)
    assert "3'h5" in expected and run_yosys(SCRIPT) == expected
    (compiled,) = (tmp_path / "yosys").iterdir()
    if found:
        compiled.write_bytes(found)
        assert run_yosys(SCRIPT) == expected
    written = compiled.stat().st_mtime_ns
    assert (
        run_yosys(SCRIPT) == expected and compiled.stat().st_mtime_ns == written and compiled.stat().st_size > 1 << 20
    )


def test_a_script_that_fails_is_an_error():
    with pytest.raises(YosysError, match="No such command: nonsense"):
        run_yosys("nonsense\n")
