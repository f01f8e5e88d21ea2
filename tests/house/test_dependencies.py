"""Dependencies, declared once: Python packages in pyproject.toml, Debian packages in run.sim.doctor and README."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import cache

import pytest

from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool
from neuroncore_rtl.run.sim.packages import PACKAGE_GROUPS, require_packages
from neuroncore_rtl.tb.cli import environment
from tests.house.tree import FOLDERS, PACKAGE, ROOT, imports, modules_in

ANSWERED = {"nki", "neuronxcc"}
"""Packages imported by users' kernels and replaced by a front end (frontends/nki/dialects/hook.py)."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements) -> set[str]:
    return {normal(re.match(r"[\w.-]+", line)[0]) for line in requirements if not line.startswith("#")}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {group: names(lines) for group, lines in PROJECT["optional-dependencies"].items()}
DECLARED = names(PROJECT["dependencies"]).union(*EXTRAS.values())
providers = cache(importlib.metadata.packages_distributions)


def packages_of(module: str) -> set[str]:
    return {normal(package) for package in providers().get(module, ())}


def test_every_package_that_is_imported_is_declared():
    found = {module.partition(".")[0] for file in modules_in(*FOLDERS, "tests") for module in imports(file.read_text())}
    foreign = found - {PACKAGE, "tests"} - ANSWERED - sys.stdlib_module_names
    assert len(foreign) > 10
    assert {name for name in foreign if not DECLARED & packages_of(name)} == set()


def test_lock_has_what_is_declared():
    assert names((ROOT / "requirements.lock").read_text().split("\n")[:-1]) >= DECLARED


def test_groups_are_those_of_pyproject():
    assert set(PACKAGE_GROUPS) == set(EXTRAS)
    for name, group in PACKAGE_GROUPS.items():
        for module in group.modules:
            assert not packages_of(module) or EXTRAS[name] & packages_of(module), module


def test_help_and_tests_are_imported_without_any_group():
    modules = [module for group in PACKAGE_GROUPS.values() for module in group.modules]
    code = f"import sys; sys.modules.update(dict.fromkeys({modules})); " + (
        "from neuroncore_rtl import __main__; from neuroncore_rtl.tb.cli import registry; print(len(registry.tests()))"
    )
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) > 30


def test_missing_group_outside_of_a_clone_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(PACKAGE_GROUPS, "plots", replace(PACKAGE_GROUPS["plots"], modules=("no_such_module",)))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(MissingTool, match=r"pip install 'neuroncore-rtl\[plots\]'"):
        require_packages("references", "plots")


def test_a_link_to_an_environment_is_not_emptied(tmp_path):
    kept = tmp_path / "environment" / "kept"
    kept.parent.mkdir()
    kept.write_text("")
    link = tmp_path / ".venv"
    link.symlink_to(kept.parent)
    with pytest.raises(environment.Unable, match=r"\.venv must not be a link"):
        environment.make(link, ROOT / "requirements.lock")
    assert kept.is_file()


def test_readme_names_the_packages_that_are_checked_for():
    [line] = re.findall(r"^apt install (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    # python3-venv depends on python3.
    needed = {tool.package for tool in TOOLS.values() if tool.required and tool.package}
    assert sorted(line.split()) == sorted(needed - {"python3"})


def test_everything_missing_is_said_before_anything_is_installed(tmp_path):
    # -S: without site-packages, as on a new machine.
    command = [sys.executable, "-S", "-m", "neuroncore_rtl.tb.cli.environment", tmp_path / "new", "requirements.lock"]
    variables = os.environ | {"PATH": str(tmp_path)}
    finished = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert finished.returncode == 1 and finished.stderr.count("\n") == 1
    assert re.fullmatch(r"Error: make is missing \(.*\); install it: apt install make\n", finished.stderr)
    assert list(tmp_path.iterdir()) == []
