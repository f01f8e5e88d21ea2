"""Units that are tested in a harness: the harness is built with all mutants of the unit in the place of its module.

The number of the mutant in force is an argument of the simulation, `+mutant=`, so that a harness is built once, and is
run by the unit's tests as it always is: one process a run.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
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
"""In front of names that Verilog has other uses for."""

_OFF = ("WIDTHEXPAND", "WIDTHTRUNC", "SELRANGE", "UNOPTFLAT", "LITENDIAN", "ASCRANGE", "PINMISSING")
"""Warnings: Yosys relies on Verilog's widths, and what proofs look at in the place of an output is for them alone."""


def shell(name: str, component: wiring.Component, sound: str) -> str:
    """Return a Verilog module around the one with all mutants, which stands where a unit's own module does.

    Arguments:
        name: of the unit's module. component: it. sound: Verilog of its module, whose ports the shell has.
    """
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
    """Return the signal that a port is of, its first bit there and the one behind its last."""
    start, stop = 0, len(value)
    while isinstance(value, Slice):
        start, stop, value = start + value.start, stop + value.start, value.value
    return value, start, stop


class Harnessed:
    """What takes the places of :mod:`run.sim.simulation`'s functions while tests of a unit run.

    Arguments:
        name: of the unit's Verilog module. component: it. folder: with `mutants.v`.
        known: whether all tests that run are known to simulate the unit.
        met: called when a simulation of the unit is about to run; it may go on in children.
        state: asked then for the number of the mutant, and the cycles that are left for it.
        ran: told how many cycles a simulation took.
        otherwise: called where a test has another design or simulator; it may raise.
    """

    def __init__(
        self,
        name: str,
        component: wiring.Component,
        folder: Path,
        *,
        known: bool,
        met: Callable[[], None],
        state: Callable[[], tuple[int, int]],
        ran: Callable[[int], None],
        otherwise: Callable[[], None],
    ):
        self._text = to_verilog(name, component)
        (self._module,) = re.findall(rf"^module {name} ?\(.*?^endmodule\n?", self._text, re.M | re.S)
        mutants = shell(name, component, self._module) + (folder / "mutants.v").read_text()
        off, on = ("".join(f"/* verilator lint_{state} {rule} */\n" for rule in _OFF) for state in ("off", "on"))
        self._mutants = f"{off}{mutants}{on}"
        self._known = known
        self._met, self._state, self._ran, self._otherwise = met, state, ran, otherwise
        self._directories: set[Path] = set()
        self._build, self._run = simulation.build, simulation.run_simulation
        simulation.build, simulation.run_simulation, simulation.run_directory = self.build, self.run, self.run_directory

    def build(self, design: simulation.Design, sim: str = "verilator", **options) -> simulation.Build:
        """Build a design with all mutants in it, if the unit is."""
        if sim != "verilator" or self._text not in design.verilog:
            self._otherwise()
            return self._build(design, sim, **options)
        # Blocks that Verilator builds apart do not see the simulation's arguments.
        text = design.verilog.replace(self._module, "") + self._mutants
        built = self._build(replace(design, verilog=text, hier_blocks=()), sim, **options)
        self._directories.add(built.directory)
        return built

    def run(
        self, built: simulation.Build, *arguments, plusargs=(), timeout_ns: int | None = None, **options
    ) -> list[simulation.TestResult]:
        """Run a build with the mutant in force, for no longer than is left to it."""
        if built.directory not in self._directories:
            self._otherwise()
            return self._run(built, *arguments, plusargs=plusargs, timeout_ns=timeout_ns, **options)
        self._met()
        mutant, left = self._state()
        if timeout_ns is not None:
            timeout_ns = min(timeout_ns, max(left, 1) * PERIOD_NS)
        plusargs = [*plusargs, f"+mutant={mutant}"]
        results = self._run(built, *arguments, plusargs=plusargs, timeout_ns=timeout_ns, **options)
        self._ran(sum(int(result.sim_time_ns) for result in results) // PERIOD_NS)
        return results

    @contextmanager
    def run_directory(self, name: str, root: Path = simulation.SIM_BUILD) -> Iterator[Path]:
        """Give a directory that goes in any case, as a mutant's log is nobody's; children get one each."""
        if self._known:
            self._met()
        (root / "runs").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=root / "runs", ignore_cleanup_errors=True) as directory:
            yield Path(directory)
