"""The floors and rooms of the house: imports go down only. hdl/ and golden/ share parameters, never arithmetic."""

import ast
import tomllib
from collections.abc import Container
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "neuroncore_rtl"
ROOT = Path(__file__).resolve().parents[2]

BELOW = {
    "spec": (),
    "hdl": ("spec",),
    "golden": ("spec",),
    "kernels": ("spec",),
    "frontends": ("spec", "golden", "kernels"),
    "tb": ("spec", "hdl", "golden", "kernels", "frontends"),
    "bench": ("spec", "hdl", "golden", "kernels", "frontends", "tb"),
}
"""For every folder those that it may import, besides itself."""

ROOMS = ("lanes", "sim", "harness", "check", "stimulus", "proofs", "view", "benches", "campaign", "cli")
"""The rooms of the testbench, from the ground up."""

STRANGERS = {
    "spec": {"amaranth", "numpy", "mpmath", "cocotb"},
    "hdl": {"numpy", "cocotb"},
    "golden": {"amaranth", "cocotb"},
    "kernels": {"amaranth", "cocotb"},
    "frontends": {"amaranth", "cocotb"},
}
"""Libraries that a folder does without."""

TOOLS = {"spec/functions/generate"}  # folders of scripts that nothing else imports; they may use any library


@cache
def imports(source: str) -> set[str]:
    """Return what a module imports, wherever in it; `from a import b` as a.b, a module or a name in one."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules_in(*folders: str) -> list[Path]:
    """Return the Python files of folders, and of those in them."""
    return [file for folder in folders for file in (ROOT / folder).rglob("*.py")]


@cache
def graph() -> dict[str, set[str]]:
    """Return for every module of the package those modules of it that it imports, by their names below the package."""
    names = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in modules_in(*BELOW)}
    modules = {name.removesuffix(".__init__"): file for file, name in names.items()}
    return {
        name: {module for i in imports(file.read_text()) if (module := resolved(i, modules)) and module != name}
        for name, file in modules.items()
    }


def resolved(name: str, modules: Container[str]) -> str | None:
    """Return the module of the package that an import is about, by its name below the package; None if foreign."""
    package, _, below = name.partition(".")
    candidates = (below, below.rpartition(".")[0])
    return next((module for module in candidates if module in modules), None) if package == PACKAGE else None


@pytest.mark.parametrize("folder", BELOW)
def test_folder_imports_only_from_floors_below(folder):
    allowed = {folder, *BELOW[folder]}
    # The command line is the roof: it starts the measurements, which know everything below it.
    arrows = [(a, b) for a, targets in graph().items() for b in targets if a.split(".")[0] == folder]
    assert arrows
    offences = [(a, b) for a, b in arrows if b.split(".")[0] not in allowed | ({"bench"} if is_roof(a) else set())]
    assert offences == []


def test_measurements_do_not_know_the_command_line():
    assert [(a, b) for a, targets in graph().items() for b in targets if a.startswith("bench") and is_roof(b)] == []


def is_roof(module: str) -> bool:
    """Return whether a module is in the uppermost room, or is what starts it."""
    return module.startswith("tb.cli") or module == "tb.__main__"


def test_rooms_of_the_testbench_import_downwards():
    rooms = {f"tb.{room}": height for height, room in enumerate(ROOMS)}
    inside = [name for name in graph() if name.count(".") >= 2 and name.startswith("tb.")]
    heights = {name: rooms[".".join(name.split(".")[:2])] for name in inside}
    assert set(heights.values()) == set(range(len(ROOMS)))
    assert [(a, b) for a in heights for b in graph()[a] if b in heights and heights[b] > heights[a]] == []


def test_testbench_has_rooms_only():
    entries = {path.name for path in (ROOT / "tb").iterdir() if path.name != "__pycache__"}
    assert entries == {*ROOMS, "__init__.py", "__main__.py"}


def test_no_modules_import_each_other():
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("folder", STRANGERS)
def test_folder_does_without_libraries(folder):
    files = [file for file in modules_in(folder) if str(file.parent.relative_to(ROOT)) not in TOOLS]
    found = {(file.name, i) for file in files if not file.name.startswith("train") for i in imports(file.read_text())}
    assert {(name, i) for name, i in found if i.split(".")[0] in STRANGERS[folder]} == set()


def test_one_name_is_taken_outside():
    """Nothing is imported under the bare name of a folder, which could be anybody's."""
    files = modules_in(*BELOW, "tests")
    bare = {(file.name, i) for file in files for i in imports(file.read_text()) if i.split(".")[0] in BELOW}
    assert bare == set()


def test_the_rule_sees_every_form_of_import():
    source = "import golden.arith as a\ndef f():\n    from tb.benches import X\nfrom . import hdl\n"
    assert imports(source) == {"golden.arith", "tb.benches.X"}


def test_hardware_does_not_postpone_annotations():
    # `from __future__ import annotations` turns the port declarations of an Amaranth component into strings.
    for file in modules_in("hdl"):
        assert "from __future__ import annotations" not in file.read_text(), file


def test_package_lists_every_folder():
    """`packages` in pyproject.toml is complete, so that a wheel holds all modules."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {file.parent.relative_to(ROOT) for file in modules_in(*BELOW)}
    assert sorted(listed) == sorted([PACKAGE, *(".".join([PACKAGE, *folder.parts]) for folder in folders)])
