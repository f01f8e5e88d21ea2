"""Public names of the package: listed, typed, and imported at their first use."""

import ast
import subprocess
import sys
from types import ModuleType

import pytest

import neuroncore_rtl
from neuroncore_rtl.run.program import run
from tests.house.tree import PACKAGE, ROOT

NAMES = dir(neuroncore_rtl)


def in_a_process(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def test_importing_the_package_imports_nothing_large():
    large = "{'numpy', 'amaranth', 'neuroncore_rtl.kernels', 'neuroncore_rtl.run.sim'}"
    first = "import sys, neuroncore_rtl; print('neuroncore_rtl.run' in sys.modules)"
    assert in_a_process(f"{first}; import neuroncore_rtl.run; print({large} & sys.modules.keys())") == "False\nset()\n"


@pytest.mark.parametrize("name", NAMES)
def test_every_name_resolves_and_is_in_the_docstring(name):
    found = getattr(neuroncore_rtl, name)
    assert name in ("ROOT", "SIM_BUILD") or f"`{name}`" in neuroncore_rtl.__doc__
    assert isinstance(found, ModuleType) == (name in ("instructions", "run"))


def test_names_need_no_other_import_before():
    program = f"import {PACKAGE} as p\nfor name in reversed(dir(p)):\n    print(name, getattr(p, name) and 1)"
    assert in_a_process(program).split("\n") == [f"{name} 1" for name in reversed(NAMES)] + [""]


def test_type_checkers_see_the_same_names():
    stub = ast.parse((ROOT / PACKAGE / "__init__.pyi").read_text())
    typed = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed.pop("Path") == "pathlib"
    assert typed == {
        name: f"{PACKAGE}.{module}" for module, names in neuroncore_rtl._MODULES.items() for name in names.split()
    }
    assert sorted([*typed, "ROOT", "SIM_BUILD"]) == NAMES


def test_run_is_a_function_and_a_package():
    def copy(program):
        x, y = (program.space.hbm(name, "fp32", (4, 8)) for name in "xy")
        program.append(neuroncore_rtl.dma_copy(y, x))

    for function in (neuroncore_rtl.run, run):
        assert function(copy, {"x": [[3.0] * 8] * 4}, preset="tiny", on="golden").arrays["y"].sum() == 96
    for module in (neuroncore_rtl, neuroncore_rtl.run):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'walk'"):
            _ = module.walk
