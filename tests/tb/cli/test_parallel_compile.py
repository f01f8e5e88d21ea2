"""`parallel_compile`: programs of a script in the cache before it runs, errors, and Ctrl-C."""

import os
import runpy
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from neuroncore_rtl.tb.cli.commands import app

pytest.importorskip("jax")

SCRIPT = """
import sys
import jax.numpy as jnp
import numpy as np
from neuroncore_rtl import jit

options = {"preset": "nano", "target": "golden"}
double, solve = jit(lambda x: x + x, **options), jit(jnp.linalg.eigh, **options)
x = np.ones((2, 2), np.float32)
for _ in range(2):
    x = double(x)
print("sum", float(x.sum()), sys.argv[1:])
if "solve" in sys.argv:
    solve(x)
    raise ValueError("later")
"""


def command(tmp_path, *words):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "NEURON_COMPILE_CACHE_URL": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *words], env=environment, **pipes)


def test_a_scripts_programs_are_compiled_before_it_runs_and_an_error_stops_no_other(tmp_path, monkeypatch, capsys):
    script = str(tmp_path / "script.py")
    words = "-m", "neuroncore_rtl", "parallel_compile", "--workers", "1", script, "--solve", "solve"
    compiling = command(tmp_path, *words)
    out, errors = compiling.communicate()
    lines = out.splitlines()
    assert compiling.returncode == 1 and "ValueError: later" in errors
    assert lines[0] == "sum 0.0 ['--solve', 'solve']"
    assert lines[1] == f"{script} ended with status 1; what it called before is compiled"
    assert lines[2].startswith("[1/2] <lambda>: compiled, ")
    assert lines[3].startswith("[2/2] eigh: operations must be StableHLO's own, not a call of lapack")
    (file,) = (tmp_path / "cache").iterdir()
    made = file.stat().st_mtime_ns
    monkeypatch.setattr(sys, "argv", [script])
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "cache"))
    runpy.run_path(script)
    out, errors = capsys.readouterr()
    assert out == "sum 16.0 []\n" and "compiling" not in errors
    assert file.stat().st_mtime_ns > made  # used, not written
    assert [*(tmp_path / "cache").iterdir()] == [file]


def test_a_missing_script_is_refused():
    done = CliRunner().invoke(app, ["parallel_compile", "other.py"])
    assert (done.exit_code, done.stderr) == (2, "Error: the script must be an existing file, not 'other.py'\n")


def test_ctrl_c_ends_all_processes_with_one_line(tmp_path):
    (tmp_path / "sleep.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    running = command(tmp_path, "-m", "neuroncore_rtl", "parallel_compile", str(tmp_path / "sleep.py"))
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert running.communicate() == ("", "interrupted\n") and running.returncode == 130
    assert time.monotonic() - start < 30  # the script, which holds the pipe, has ended too
