"""Bench of the core's control port with the AXI4-Lite manager of cocotbext-axi, without a core."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.host.axi_lite import AxiLiteBridge, AxiLitePort
from neuroncore_rtl.hdl.host.registers import HostRegisters
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.hdl.verilog.hierarchy import lead_out
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_map import HOST_ADDRESS_BITS

__all__ = ["ControlBench", "control_design"]


class ControlBench(wiring.Component):
    """The host registers of a core, behind a bridge from AXI4-Lite; `host`: the registers' ports other than the bus."""

    def __init__(self, config: Config):
        self.config = config
        self.registers = HostRegisters(config)
        members = self.registers.signature.members
        self.others = wiring.Signature({name: member for name, member in members.items() if name != "bus"})
        super().__init__({"s_axi": In(AxiLitePort(HOST_ADDRESS_BITS)), "host": Out(self.others)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge = bridge = AxiLiteBridge(HOST_ADDRESS_BITS)
        m.submodules.registers = registers = self.registers
        wiring.connect(m, wiring.flipped(self.s_axi), bridge.axi)
        wiring.connect(m, bridge.bus, registers.bus)
        lead_out(m, self.others, registers, self.host)
        return m


def control_design(config: Config) -> simulation.Design:
    """Return the design of the bench."""
    return simulation.Design("ControlBench", to_verilog("ControlBench", ControlBench(config)))
