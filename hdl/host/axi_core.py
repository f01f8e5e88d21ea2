"""Core as a block of a board design: AXI4 to memory, AXI4-Lite for control, one clock, one reset."""

from collections.abc import Iterator

from amaranth import ClockDomain, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from neuroncore_rtl.hdl.core_ports import axi_id_bits
from neuroncore_rtl.hdl.host.axi_lite import AxiLiteBridge, AxiLitePort
from neuroncore_rtl.hdl.host.hosted_core import HostedCore, shown_signature
from neuroncore_rtl.hdl.memory.axi import CONSTANT_BITS, AxiPort, constants
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_map import HOST_ADDRESS_BITS

__all__ = ["AxiCore", "memory_ports"]


def memory_ports(config: Config) -> list[str]:
    """Return the names of the AXI ports to memory: `m_axi` for one port, else `m_axi_0`, `m_axi_1` and so on."""
    return ["m_axi"] if config.hbm_ports == 1 else [f"m_axi_{port}" for port in range(config.hbm_ports)]


class AxiCore(wiring.Component):
    """A `hdl.host.hosted_core.HostedCore` with port names that vendor tools recognise.

    Arguments:
        config: the machine's parameters.
        debug: whether to add ports that show the core's internal state.

    Raises:
        ValueError: if the configuration has more than one core: a system of linked cores has no host registers.

    Ports:
        aclk: clock, rising edge.
        aresetn: synchronous reset, active low.
        s_axi_*: AXI4-Lite, 32 bits wide, to the registers of `spec.host_map`; refused accesses return SLVERR.
        m_axi_*: AXI4 to memory, with every signal except USER; `hdl.memory.axi.constants` lists the constant
            ones.
        irq: interrupt to the host; a level.
        debug_*: with `debug`, the remaining ports of `hdl.core.Core` under their names.
    """

    def __init__(self, config: Config, *, debug: bool = False):
        self.config = config
        self.debug = debug
        shown = shown_signature(config)
        members = {"aclk": In(1), "aresetn": In(1), **_outer("s_axi", AxiLitePort(HOST_ADDRESS_BITS), In)}
        for prefix in memory_ports(config):
            members |= _outer(prefix, AxiPort(config.hbm_bytes, axi_id_bits(config)), Out)
            members |= {f"{prefix}_{name}": Out(bits) for name, bits in _constant_signals(CONSTANT_BITS)}
        members["irq"] = Out(1)
        if debug:
            members |= {f"debug_{name}": Out(len(value)) for name, _, value in module_ports(shown, shown.create())}
        super().__init__(members)
        buses = ":".join(["s_axi", *memory_ports(config)])
        # Vivado cannot infer these properties from the names.
        self.aclk.attrs["X_INTERFACE_PARAMETER"] = f"ASSOCIATED_BUSIF {buses}, ASSOCIATED_RESET aresetn"
        self.irq.attrs["X_INTERFACE_INFO"] = "xilinx.com:signal:interrupt:1.0 irq INTERRUPT"
        self.irq.attrs["X_INTERFACE_PARAMETER"] = "SENSITIVITY LEVEL_HIGH"

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        sync.clk = self.aclk
        m.d.comb += sync.rst.eq(~self.aresetn)
        m.submodules.core = core = HostedCore(self.config)
        m.submodules.bridge = bridge = AxiLiteBridge(HOST_ADDRESS_BITS)
        wiring.connect(m, bridge.bus, core.bus)
        m.d.comb += self.irq.eq(core.interrupt)
        self._connect(m, "s_axi", bridge.axi)
        for prefix, axi in zip(memory_ports(self.config), core.axi, strict=True):
            self._connect(m, prefix, axi)
            values = constants(self.config.hbm_bytes)
            m.d.comb += [getattr(self, f"{prefix}_{name}").eq(value) for name, value in _constant_signals(values)]
        if self.debug:
            for name, _, value in module_ports(shown_signature(self.config), core):
                m.d.comb += getattr(self, f"debug_{name}").eq(value)
        return m

    def _connect(self, m: Module, prefix: str, axi) -> None:
        """Connect the AXI port `axi` of the core inside to this component's signals with the given prefix."""
        for (name,), member, inside in axi.signature.flatten(axi):
            outside = getattr(self, f"{prefix}_{name}")
            m.d.comb += outside.eq(inside) if member.flow == Out else inside.eq(outside)


def _outer(prefix: str, port: wiring.Signature, flow) -> dict[str, Member]:
    """Return the signals of an AXI port as members of `AxiCore`: each name with prefix, direction and width."""
    flows = {Out: Out, In: In} if flow == Out else {Out: In, In: Out}
    signals = port.flatten(port.create())
    return {f"{prefix}_{name}": flows[member.flow](len(Value.cast(value))) for (name,), member, value in signals}


def _constant_signals(values: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the name of each constant signal of the AXI channels AW and AR, with its entry of `values`."""
    for channel in ("aw", "ar"):
        for name, value in values.items():
            yield f"{channel}{name}", value
