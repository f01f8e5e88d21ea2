"""Icarus Verilog: cocotb's runner, writing VCD where it is told to."""

import cocotb_tools.config
from cocotb_tools import runner

from tb.process import SimulatorProcess

__all__ = ["IcarusRunner"]


class IcarusRunner(SimulatorProcess, runner.Icarus):
    """cocotb's Icarus runner with the waveform as VCD, the one format that both simulators and vcdvcd know."""

    def _build_command(self) -> list[list[str]]:
        self.waves = self.record_waves
        return super()._build_command()

    def _test_command(self) -> list[list[str]]:
        waves = ["-vcd", f"+dumpfile_path={self.waves_path}"] if self.record_waves else ["-none"]
        library = cocotb_tools.config.lib_entry("vpi", "icarus")
        return [["vvp", "-m", library, *self.test_args, str(self.sim_file), *self.plusargs, *waves]]
