"""Makefile: it passes all variables of its command line to the program, and no others."""

import os
import shlex
import subprocess

import pytest

from neuroncore_rtl.tb.cli.overview import MAKEFILE


def dry_run(*words: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "--old-file=.venv/complete", *words]
    finished = subprocess.run(command, cwd=MAKEFILE.parent, env=inherited | environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "words, arguments",
    [
        (["sim", "TEST=mac"], ["sim", "mac"]),
        (["sim", "TEST=mac", "M=8", "NONSENSE=1"], ["sim", "mac", "M=8", "NONSENSE=1"]),
        (["sim", "TEST=mac", "VECTORS=a b.txt"], ["sim", "mac", "VECTORS=a b.txt"]),
        (["sim", "TEST=it's; echo"], ["sim", "it's; echo"]),
        (["help", "TEST=it's"], ["help", "it's"]),
        (["sim", "TEST=mac", "VECTORS=it's"], ["sim", "mac", "VECTORS=it's"]),
        (["sim", "TEST=a; b"], ["sim", "a; b"]),
        (["oracle", "SUITE=fpgen", "FROM=it's a"], ["oracle", "SUITE=fpgen", "FROM=it's a"]),
        (["verilog", "PRESET=full"], ["verilog", "PRESET=full"]),
        (["picture", "TEST=matmul", "A=a b.csv"], ["picture", "TEST=matmul", "A=a b.csv"]),
        (["-j4", "waves", "TEST=mac", "PYTHON=python3"], ["waves", "mac"]),
    ],
)
def test_variables_are_handed_on(words, arguments):
    python, *rest = shlex.split(dry_run(*words))
    assert python == ".venv/bin/python"
    # The order of make's variables is undefined.
    assert sorted(rest) == sorted(["-m", "neuroncore_rtl", *arguments])


def test_variables_of_the_environment_are_not():
    words = shlex.split(dry_run("sim", "TEST=mac", M="8", SEED="3"))
    assert words == [".venv/bin/python", "-m", "neuroncore_rtl", "sim", "mac"]
