"""Dependencies, declared once: Python packages in pyproject.toml, Debian packages in run.sim.doctor and README."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib

from neuroncore_rtl.run.sim.doctor import TOOLS
from tests.house.tree import FOLDERS, PACKAGE, ROOT, imports, modules_in

ANSWERED = {"nki", "neuronxcc"}
"""Packages imported by users' kernels and replaced by a front end (frontends/nki/dialects/hook.py)."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements) -> set[str]:
    return {normal(re.match(r"[\w.-]+", line)[0]) for line in requirements if not line.startswith("#")}


def declared(*extras: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return names(project["dependencies"]).union(*(names(project["optional-dependencies"][extra]) for extra in extras))


def test_every_package_that_is_imported_is_declared():
    providers = importlib.metadata.packages_distributions()
    found = {module.partition(".")[0] for file in modules_in(*FOLDERS, "tests") for module in imports(file.read_text())}
    foreign = found - {PACKAGE, "tests"} - ANSWERED - sys.stdlib_module_names
    assert len(foreign) > 10
    undeclared = {
        name for name in foreign if not declared("docs") & {normal(package) for package in providers.get(name, ())}
    }
    assert undeclared == set()


def test_lock_has_what_is_declared():
    for lock, extras in (("requirements.lock", ()), ("requirements-docs.lock", ("docs",))):
        assert declared(*extras) <= names((ROOT / lock).read_text().split("\n")[:-1])


def test_readme_names_the_packages_that_are_checked_for():
    [line] = re.findall(r"^apt install (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    # python3-venv depends on python3.
    needed = {tool.package for tool in TOOLS.values() if tool.required and tool.package}
    assert sorted(line.split()) == sorted(needed - {"python3"})


def test_everything_missing_is_said_before_anything_is_installed(tmp_path):
    # -S: without site-packages, as on a new machine.
    command = [sys.executable, "-S", "-m", "neuroncore_rtl.tb.cli.environment", tmp_path / "new", "requirements.lock"]
    environment = os.environ | {"PATH": str(tmp_path)}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert finished.returncode == 1 and finished.stderr.count("\n") == 1
    assert re.fullmatch(r"Error: make is missing \(.*\); install it: apt install make\n", finished.stderr)
    assert list(tmp_path.iterdir()) == []
