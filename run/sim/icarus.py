"""Icarus Verilog through cocotb's runner, with a VCD file of selectable path and depth."""

import cocotb_tools.config
from cocotb_tools import runner

from neuroncore_rtl.run.sim.process import SimulatorProcess

__all__ = ["ICARUS_PROGRAM", "IcarusRunner"]

ICARUS_PROGRAM = "sim.vvp"
"""Program that cocotb's runner lets Icarus build."""

_DUMP = """\
module cocotb_iverilog_dump();
    reg [8*1024-1:0] path;
    integer levels;
    initial if ($value$plusargs("dump=%s", path) && $value$plusargs("levels=%d", levels)) begin
        $dumpfile(path);
        $dumpvars(levels, {top});
    end
endmodule
"""
"""Module that records the waveform."""


class IcarusRunner(SimulatorProcess, runner.Icarus):
    """Icarus runner of cocotb with VCD waveforms, the only format that both simulators and vcdvcd support."""

    def _build_command(self) -> list[list[str]]:
        self.waves = self.record_waves
        return super()._build_command()

    def _create_iverilog_dump_file(self) -> None:
        self.iverilog_dump_file.write_text(_DUMP.format(top=self.hdl_toplevel))

    def _test_command(self) -> list[list[str]]:
        waves = ["-vcd", f"+dump={self.waves_path}", f"+levels={self.waves_levels}"] if self.record_waves else ["-none"]
        library = cocotb_tools.config.lib_entry("vpi", "icarus")
        # Icarus cannot open files with non-ASCII names.
        named = [self._readable(argument) for argument in (*self.plusargs, *waves)]
        return [["vvp", "-m", library, *self.test_args, str(self.sim_file), *named]]
