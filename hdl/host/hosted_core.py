"""A core and the registers of its host: what a board has to connect to a bus, and to a memory."""

from functools import partial

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.core_ports import axi_id_bits, core_signature
from neuroncore_rtl.hdl.host.isolation import AxiIsolation
from neuroncore_rtl.hdl.host.registers import HostRegisters
from neuroncore_rtl.hdl.verilog.hierarchy import lead_out, shared
from neuroncore_rtl.spec.config import Config

__all__ = ["HostedCore", "shown_signature"]

_TOLD = ("start", "boot_address", "host_interrupt")
"""Ports of the core that the registers drive."""


def shown_signature(config: Config) -> wiring.Signature:
    """Return the ports of a core that tell what it does.

    Raises:
        ValueError: if the core is one of an instance.
    """
    if config.cores > 1:
        raise ValueError(f"cores must be 1 for a core with registers of its own, not {config.cores}")
    members = core_signature(config).members
    return wiring.Signature({name: member for name, member in members.items() if name not in (*_TOLD, "axi")})


class HostedCore(wiring.Component):
    """A core that is alone, behind registers (`spec.host_map`), which start it, watch it and reset it at any time.

    Arguments:
        config: the machine's parameters.

    Ports:
        bus: the host's; see :class:`hdl.host.registers.HostRegisters`.
        interrupt: to the host; a level.
        axi: the ports to HBM, a cycle behind the core's. What the core has begun is brought to an end before its reset
            ends, so the memory needs none.
        The others are what :class:`hdl.core.Core` shows, as it shows it; the registers have most of it.

    Raises:
        ValueError: if the core is one of an instance.
    """

    RESET_CYCLES = 4
    """Cycles that a reset by the host lasts at least."""

    def __init__(self, config: Config):
        self.config = config
        own = {"bus": In(Bus()), "interrupt": Out(1), "axi": core_signature(config).members["axi"]}
        super().__init__(own | dict(shown_signature(config).members))

    def elaborate(self, platform):
        m = Module()
        m.submodules.registers = registers = HostRegisters(self.config)
        resetting = Signal()
        core = shared(m, "core", "core", partial(Core, self.config), platform, reset=resetting)
        wiring.connect(m, wiring.flipped(self.bus), registers.bus)
        m.d.comb += self.interrupt.eq(registers.interrupt)
        lead_out(m, shown_signature(self.config), core, self)
        m.d.comb += [getattr(core, name).eq(getattr(registers, name)) for name in _TOLD]
        for name in ("done", "exit_code", "error", "quiet", "counters"):
            m.d.comb += getattr(registers, name).eq(getattr(core, name))
        m.d.comb += [registers.console.valid.eq(core.console.valid), registers.console.payload.eq(core.console.payload)]
        idle = []
        for number, axi in enumerate(core.axi):
            m.submodules[f"isolation{number}"] = isolation = AxiIsolation(
                self.config.hbm_bytes, axi_id_bits(self.config)
            )
            wiring.connect(m, axi, isolation.manager)
            wiring.connect(m, isolation.port, wiring.flipped(self.axi[number]))
            m.d.comb += isolation.stop.eq(resetting)
            idle.append(isolation.idle)
        left = Signal(range(self.RESET_CYCLES))
        m.d.comb += registers.resetting.eq(resetting)
        with m.If(registers.reset):
            m.d.sync += [resetting.eq(1), left.eq(self.RESET_CYCLES - 1)]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Elif(Cat(idle).all()):
            m.d.sync += resetting.eq(0)
        return m
