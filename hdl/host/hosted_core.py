"""Core with the registers of its host: the part to connect to a bus and a memory."""

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
"""Inputs of the core that the host registers drive."""


def shown_signature(config: Config) -> wiring.Signature:
    """Return the ports of `hdl.core.Core` that show its state: all except the HBM ports and the inputs from the host.

    Raises:
        ValueError: if the configuration has more than one core: a system of linked cores has no host registers.
    """
    if config.cores > 1:
        raise ValueError(f"cores must be 1 for a core with host registers, not {config.cores}")
    members = core_signature(config).members
    return wiring.Signature({name: member for name, member in members.items() if name not in (*_TOLD, "axi")})


class HostedCore(wiring.Component):
    """A single core behind registers (`spec.host_map`) that start, observe and reset it at any time.

    Arguments:
        config: the machine's parameters.

    Ports:
        bus: bus of the host; see `hdl.host.registers.HostRegisters`.
        interrupt: interrupt to the host; a level.
        axi: ports to HBM, one cycle behind the core's. A reset by the host ends only when all outstanding transactions
            have ended, so the memory needs no reset.
        The other ports are outputs of `hdl.core.Core`; most can also be read in the registers.

    Raises:
        ValueError: if the core is part of an instance.
    """

    RESET_CYCLES = 4
    """Minimum length of a reset by the host, in cycles."""

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
