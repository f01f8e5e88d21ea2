"""Benches of the AXI ports with the independent models of cocotbext-axi; `axi_tests.py` has the cocotb tests."""

import json
from collections.abc import Mapping, Sequence

from amaranth import Cat, Instance, Module, Signal, Value
from amaranth.hdl import ClockSignal, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotbext.axi import AxiBurstType

from neuroncore_rtl.hdl.memory.axi import MAX_BEATS, AxiPort
from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.hdl.verilog.hierarchy import lead_out
from neuroncore_rtl.run.harness.hbm import HBM_ARGUMENTS
from neuroncore_rtl.run.harness.hbm import VERILOG as HBM_VERILOG
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.layouts import define_lines

__all__ = ["BENCH_BYTES", "CHECKER_VERILOG", "HbmBench", "RamBench", "design", "run_axi"]

CHECKER_VERILOG = HBM_VERILOG.with_name("axi_checker.v")
BENCH_BYTES = 1 << 16


class FullPort(wiring.Signature):
    """The signals of an `AxiPort`, plus size and burst type for cocotbext-axi."""

    def __init__(self, size: int, id_bits: int):
        port = AxiPort(size, id_bits)
        constants = {
            f"{channel}{name}": Out(bits) for channel in ("aw", "ar") for name, bits in (("size", 3), ("burst", 2))
        }
        super().__init__({name: member for (name,), member, _ in port.flatten(port.create())} | constants)


class HbmBench(wiring.Component):
    """The HBM model with `ports` ports and `each` managers per port; `idle`: no request is outstanding."""

    def __init__(self, size: int, ports: int, each: int):
        self.size = size
        self.ports = ports
        self.each = each
        super().__init__({"managers": In(FullPort(size, 1)).array(ports * each), "dump": In(1), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        id_bits = AxiArbiter.id_bits(self.each)
        arbiters = [AxiArbiter(self.size, self.each) for _ in range(self.ports)]
        idle = []
        for number, arbiter in enumerate(arbiters):
            m.submodules[f"arbiter{number}"] = arbiter
            idle.append(_check(m, f"port{number}", arbiter.port))
            for place, inner in enumerate(arbiter.managers):
                outer = self.managers[number * self.each + place]
                idle.append(_check(m, f"manager{number}_{place}", inner))
                _spread(m, inner, outer)
        m.d.comb += self.idle.eq(Cat(idle).all())
        connections = {}
        for signals in zip(*(arbiter.port.signature.flatten(arbiter.port) for arbiter in arbiters), strict=True):
            (name,), member, _ = signals[0]
            connections[f"{'i' if member.flow == Out else 'o'}_{name}"] = Cat(value for *_, value in signals)
        sizes = {"PORTS": self.ports, "BYTES": self.size, "ID_BITS": id_bits, "DEPTH": BENCH_BYTES // self.size}
        m.submodules.hbm = _clocked("hbm", sizes, i_dump=self.dump, **connections)
        return m


class RamBench(wiring.Component):
    """Units of the machine, each with an AXI port `axi`, which one arbiter connects to the bench's port `axi`.

    `idle` is set while no request is outstanding. Other ports of a unit have the unit's name as a prefix.
    """

    def __init__(self, size: int, units: Mapping[str, wiring.Component]):
        self.size = size
        self.units = units
        self.others = {
            name: wiring.Signature({port: member for port, member in unit.signature.members.items() if port != "axi"})
            for name, unit in units.items()
        }
        ports = {name: Out(signature) for name, signature in self.others.items()}
        super().__init__({**ports, "axi": Out(FullPort(size, AxiArbiter.id_bits(len(units)))), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = AxiArbiter(self.size, len(self.units))
        idle = []
        for manager, (name, unit) in zip(arbiter.managers, self.units.items(), strict=True):
            m.submodules[name] = unit
            wiring.connect(m, unit.axi, manager)
            idle.append(_check(m, f"{name}_checker", unit.axi))
            lead_out(m, self.others[name], unit, getattr(self, name))
        idle.append(_check(m, "checker", arbiter.port))
        m.d.comb += self.idle.eq(Cat(idle).all())
        _spread(m, arbiter.port, self.axi)
        for channel in ("aw", "ar"):
            m.d.comb += getattr(self.axi, f"{channel}size").eq((self.size - 1).bit_length())
            m.d.comb += getattr(self.axi, f"{channel}burst").eq(AxiBurstType.INCR)
        return m


def _check(m: Module, name: str, axi) -> Signal:
    """Add a protocol checker to a port; return whether no request is outstanding."""
    idle = Signal(name=f"{name}_idle")
    signals = {f"i_{name}": value for (name,), _, value in axi.signature.flatten(axi)}
    sizes = {"BYTES": len(axi.w.payload.strb), "ID_BITS": len(axi.aw.payload.id), "MAX_BEATS": MAX_BEATS}
    m.submodules[name] = _clocked("axi_checker", sizes, **signals, o_idle=idle)
    return idle


def _clocked(module: str, sizes: Mapping[str, int], **ports: Value) -> Instance:
    parameters = {f"p_{name}": size for name, size in sizes.items()}
    return Instance(module, **parameters, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)


def _spread(m: Module, axi, port) -> None:
    for (name,), member, inside in axi.signature.flatten(axi):
        outside = getattr(port, name)
        m.d.comb += outside.eq(inside) if member.flow == Out else inside.eq(outside)


def design(bench: wiring.Component) -> simulation.Design:
    """Return the design of a bench."""
    name = type(bench).__name__
    verilog = [path.read_text() for path in (HBM_VERILOG, CHECKER_VERILOG)]
    return simulation.Design(name, "\n".join((define_lines(HBM_ARGUMENTS), *verilog, to_verilog(name, bench))))


def run_axi(
    built: simulation.Build,
    test: str | None,
    plusargs: Sequence[str] = (),
    *,
    module: str = "axi_tests",
    **settings: object,
) -> None:
    """Run one cocotb test, or all if None, of a module of this folder, with settings for the test."""
    with simulation.run_directory("axi") as directory:
        env = {"COCOTB_LOG_LEVEL": "WARNING", "SETTINGS": json.dumps(settings)}
        where = f"neuroncore_rtl.tb.tests.core.{module}"
        simulation.run_simulation(built, where, run_dir=directory, testcase=test, plusargs=plusargs, env=env)
