"""Ctrl-C: one line on stderr, status 130, and no process that continues."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from neuroncore_rtl import ROOT


def processes(session: int) -> list[str]:
    """Return the names of a session's processes that are alive."""
    alive = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, _, of = rest.split()[:4]
        if int(of) == session and state != "Z":
            alive.append(name)
    return alive


def interrupt(words: list[str], line: str, **variables: object) -> tuple[int, str]:
    run = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | {name: str(value) for name, value in variables.items()},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert any(line in said for said in run.stderr), f"{line!r} was not printed"
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=120)
    for _ in range(400):  # processes that were killed need a moment
        if not (alive := processes(run.pid)):
            break
        time.sleep(0.05)
    assert not alive
    return run.returncode, said


MATMUL = "-m neuroncore_rtl sim matmul PRESET=tiny M=64 K=64 N=64".split()


def test_while_modules_are_imported():
    status, said = interrupt(["-X", "importtime", *MATMUL], "amaranth.hdl")
    assert (status, re.sub(r"import time:.*\n", "", said)) == (130, "interrupted\n")


def test_while_processes_elaborate_the_design(tmp_path):
    assert interrupt(MATMUL, "elaborating core of 4x4", NEURONCORE_RTL_FILES=tmp_path) == (130, "interrupted\n")


def test_while_the_design_is_simulated():
    assert interrupt(MATMUL, "verilator: running") == (130, "interrupted\n")


SWEEP = """
[[sweep]]
test = "matmul"
PRESET = "nano"
TARGET = "model"
M = [1, 2, 3, 4, 5, 6, 7, 8]
"""


def test_while_a_sweep_starts_its_workers(tmp_path):
    spec = tmp_path / "small.toml"
    spec.write_text(SWEEP)
    words = ["-m", "neuroncore_rtl", "sweep", f"SPEC={spec}"]
    assert interrupt(words, "sweep: 8 to run", NEURONCORE_RTL_FILES=tmp_path) == (130, "interrupted\n")


SCRIPT = """
import sys
from neuroncore_rtl.run.sim.elaboration import engine_verilog
from neuroncore_rtl.spec.config import PRESETS

try:
    engine_verilog(PRESETS["tiny"], "core")
except KeyboardInterrupt:
    sys.exit("caught")
"""


def test_script_of_a_user_may_catch_it(tmp_path):
    assert interrupt(["-c", SCRIPT], "elaborating core of 4x4", NEURONCORE_RTL_FILES=tmp_path) == (1, "caught\n")
