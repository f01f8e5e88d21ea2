"""The floors and rooms of the house: imports go down only. hdl/ and golden/ share parameters, never arithmetic."""

import ast
import tomllib
from collections.abc import Container
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
    "tb": ("spec", "hdl", "golden", "kernels"),
    "bench": ("spec", "hdl", "golden", "kernels", "tb"),
}
"""For every folder those that it may import, besides itself."""

ROOMS = ("sim", "harness", "check", "stimulus", "view", "benches", "cli")
"""The rooms of the testbench, from the ground up."""

STRANGERS = {
    "spec": {"amaranth", "numpy", "mpmath", "cocotb"},
    "hdl": {"numpy", "cocotb"},
    "golden": {"amaranth", "cocotb"},
    "kernels": {"amaranth", "cocotb"},
}
"""Libraries that a folder does without."""

TOOLS = {"spec/functions/generate"}
"""Folders of scripts that nothing else imports; they may use any library."""


def imports(source: str) -> set[str]:
    """Return what a module imports, wherever in it; `from a import b` as a.b, a module or a name in one."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def graph() -> dict[str, set[str]]:
    """Return for every module of the package those modules of it that it imports, by their names below the package."""
    files = [file for folder in BELOW for file in (ROOT / folder).rglob("*.py")]
    modules = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}
    return {
        name: {module for i in imports(file.read_text()) if (module := resolved(i, modules)) and module != name}
        for name, file in modules.items()
    }


def resolved(name: str, modules: Container[str]) -> str | None:
    """Return the module of the package that an import is about, by its name below the package; None if foreign."""
    package, _, below = name.partition(".")
    candidates = (below, below.rpartition(".")[0])
    return next((module for module in candidates if module in modules), None) if package == PACKAGE else None


GRAPH = graph()


@pytest.mark.parametrize("folder", BELOW)
def test_folder_imports_only_from_floors_below(folder):
    allowed = {folder, *BELOW[folder]}
    # The command line is the roof: it starts the measurements, which know everything below it.
    arrows = [(a, b) for a, targets in GRAPH.items() for b in targets if a.split(".")[0] == folder]
    assert arrows
    offences = [(a, b) for a, b in arrows if b.split(".")[0] not in allowed | ({"bench"} if is_roof(a) else set())]
    assert offences == []


def test_measurements_do_not_know_the_command_line():
    assert [(a, b) for a, targets in GRAPH.items() for b in targets if a.startswith("bench") and is_roof(b)] == []


def is_roof(module: str) -> bool:
    """Return whether a module is in the uppermost room, or is what starts it."""
    return module.startswith("tb.cli") or module == "tb.__main__"


def test_rooms_of_the_testbench_import_downwards():
    rooms = {f"tb.{room}": height for height, room in enumerate(ROOMS)}
    heights = {
        name: rooms[".".join(name.split(".")[:2])] for name in GRAPH if name.count(".") >= 2 and name[:3] == "tb."
    }
    assert set(heights.values()) == set(range(len(ROOMS)))
    assert [(a, b) for a in heights for b in GRAPH[a] if b in heights and heights[b] > heights[a]] == []


def test_testbench_has_rooms_only():
    entries = {path.name for path in (ROOT / "tb").iterdir() if path.name != "__pycache__"}
    assert entries == {*ROOMS, "__init__.py", "__main__.py"}


def test_no_modules_import_each_other():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("folder", STRANGERS)
def test_folder_does_without_libraries(folder):
    files = [
        file
        for file in (ROOT / folder).rglob("*.py")
        if str(file.parent.relative_to(ROOT)) not in TOOLS and not file.name.startswith("train")
    ]
    found = {
        (file.name, i) for file in files for i in imports(file.read_text()) if i.split(".")[0] in STRANGERS[folder]
    }
    assert found == set()


def test_one_name_is_taken_outside():
    """Nothing is imported under the bare name of a folder, which could be anybody's."""
    files = [file for folder in (*BELOW, "tests") for file in (ROOT / folder).rglob("*.py")]
    bare = {(file.name, i) for file in files for i in imports(file.read_text()) if i.split(".")[0] in BELOW}
    assert bare == set()


def test_the_rule_sees_every_form_of_import():
    source = "import golden.arith as a\ndef f():\n    from tb.benches import X\nfrom . import hdl\n"
    assert imports(source) == {"golden.arith", "tb.benches.X"}


def test_hardware_does_not_postpone_annotations():
    # `from __future__ import annotations` turns the port declarations of an Amaranth component into strings.
    for file in (ROOT / "hdl").rglob("*.py"):
        assert "from __future__ import annotations" not in file.read_text(), file


def test_package_lists_every_folder():
    """`packages` in pyproject.toml is complete, so that a wheel holds all modules."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {file.parent.relative_to(ROOT) for folder in BELOW for file in (ROOT / folder).rglob("*.py")}
    assert sorted(listed) == sorted([PACKAGE, *(".".join([PACKAGE, *folder.parts]) for folder in folders)])
