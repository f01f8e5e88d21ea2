"""Units tested in a harness, which contains a module of all mutants; the argument `+mutant=` selects the mutant."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from amaranth.hdl import Signal, Value
from amaranth.hdl._ast import Slice
from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.clock import PERIOD_NS
from neuroncore_rtl.tb.campaign.mutation.netlist import SELECT_BITS, ports_of

__all__ = ["Harnessed", "shell"]

ESCAPE = "\\"

_OFF = ("WIDTHEXPAND", "WIDTHTRUNC", "SELRANGE", "UNOPTFLAT", "LITENDIAN", "ASCRANGE", "PINMISSING")
"""Yosys relies on Verilog's width rules, and only proofs use the observed outputs."""


def shell(name: str, component: wiring.Component, sound: str) -> str:
    """Return a wrapper of the module with all mutants, with the ports of `sound`."""
    whole = ports_of(component)
    names = {id(signal): port.name for port, signal in whole}
    parts = {member: _part(value) for member, _, value in module_ports(component.signature, component) if len(value)}
    declared = re.findall(r"^  (input|output) (\[\d+:0\] )?(\S+) ?;", sound, re.M)
    heads = "".join(f"  {way} {width}{port} ;\n" for way, width, port in declared)
    wires = "".join(f"  wire [{port.width - 1}:0] {port.name};\n" for port, _ in whole)
    for way, _, port in declared:
        if port not in ("clk", "rst"):
            signal, start, stop = parts[port.removeprefix(ESCAPE)]
            part = f"{names[id(signal)]}[{stop - 1}:{start}]"
            wires += f"  assign {part} = {port} ;\n" if way == "input" else f"  assign {port} = {part};\n"
    connected = ", ".join(f".{port}({port})" for port in ("mutant", "clk", "rst", *names.values()))
    return (
        f"module {name}({', '.join(f'{port} ' for *_, port in declared)});\n{heads}{wires}"
        f"  reg [{SELECT_BITS - 1}:0] mutant;\n"
        '  initial if (!$value$plusargs("mutant=%d", mutant)) mutant = 0;\n'
        f"  top unit({connected});\nendmodule\n"
    )


def _part(value: Value) -> tuple[Signal, int, int]:
    start, stop = 0, len(value)
    while isinstance(value, Slice):
        start, stop, value = start + value.start, stop + value.start, value.value
    return value, start, stop


class Harnessed:
    """Replacement of `run.sim.simulation`'s functions while a unit's tests run, so that they simulate mutants.

    The session forks before a simulation of the unit, limits and counts cycles, and skips tests that do not simulate
    the unit.
    """

    def __init__(self, session, component: wiring.Component, folder: Path):
        self._session, name = session, session.module
        self._text = to_verilog(name, component)
        (self._module,) = re.findall(rf"^module {name} ?\(.*?^endmodule\n?", self._text, re.M | re.S)
        mutants = shell(name, component, self._module) + (folder / "mutants.v").read_text()
        off, on = ("".join(f"/* verilator lint_{state} {rule} */\n" for rule in _OFF) for state in ("off", "on"))
        self._mutants = f"{off}{mutants}{on}"
        self._directories: set[Path] = set()
        self._build, self._run = simulation.build, simulation.run_simulation
        simulation.build, simulation.run_simulation, simulation.run_directory = self.build, self.run, self.run_directory

    def build(self, design: simulation.Design, sim: str = "verilator", **options) -> simulation.Build:
        if sim != "verilator" or self._text not in design.verilog:
            self._session.skip_other()
            return self._build(design, sim, **options)
        # Blocks that Verilator builds separately do not see the simulation's arguments.
        text = design.verilog.replace(self._module, "") + self._mutants
        built = self._build(replace(design, verilog=text, hier_blocks=(), side_by_side=None), sim, **options)
        self._directories.add(built.directory)
        return built

    def run(
        self, built: simulation.Build, *arguments, plusargs=(), timeout_ns: int | None = None, **options
    ) -> list[simulation.TestResult]:
        if built.directory not in self._directories:
            self._session.skip_other()
            return self._run(built, *arguments, plusargs=plusargs, timeout_ns=timeout_ns, **options)
        self._session.fork()
        if timeout_ns is not None:
            timeout_ns = min(timeout_ns, max(self._session.limit - self._session.cycles, 1) * PERIOD_NS)
        plusargs = [*plusargs, f"+mutant={self._session.mutant}"]
        results = self._run(built, *arguments, plusargs=plusargs, timeout_ns=timeout_ns, **options)
        self._session.cycles += sum(int(result.sim_time_ns) for result in results) // PERIOD_NS
        return results

    @contextmanager
    def run_directory(self, name: str, root: Path = simulation.SIM_BUILD) -> Iterator[Path]:
        """Give a temporary directory, one per child, as the logs of mutants are not kept."""
        if self._session.request.limits:  # all tests that run are known to simulate the unit
            self._session.fork()
        (root / "runs").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=root / "runs", ignore_cleanup_errors=True) as directory:
            yield Path(directory)
