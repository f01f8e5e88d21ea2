"""The floors of the house: who may import whom. Hardware and golden model share parameters, never arithmetic."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FORBIDDEN = {
    "spec": {"hdl", "golden", "kernels", "tb", "bench", "tests", "amaranth", "numpy", "mpmath", "cocotb"},
    "hdl": {"golden", "kernels", "tb", "bench", "tests", "cocotb"},
    "golden": {"hdl", "kernels", "tb", "bench", "tests", "amaranth", "cocotb"},
    "kernels": {"hdl", "golden", "tb", "bench", "tests", "amaranth", "cocotb"},
    "tb": {"tests", "bench"},
}
"""For every folder what nothing in it may import."""

EXCEPTIONS = {("tb/cli/registry.py", "bench"), ("spec/functions/generate/fit.py", "mpmath")}
"""The registry starts bench/ for `make bench`. The script that makes tables is a tool that nothing else imports."""


def imports(source: str) -> set[str]:
    """Return the top-level packages that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_folder_imports_nothing_from_another_floor(folder):
    offences = {
        (str(file.relative_to(ROOT)), package)
        for file in (ROOT / folder).rglob("*.py")
        for package in imports(file.read_text()) & FORBIDDEN[folder]
    }
    assert offences - EXCEPTIONS == set()


def test_the_rule_sees_every_form_of_import():
    source = "import golden.arith as a\ndef f():\n    from tb.cli.registry import X\nfrom . import hdl\n"
    assert imports(source) == {"golden", "tb"}


def test_hardware_does_not_postpone_annotations():
    # `from __future__ import annotations` turns the port declarations of an Amaranth component into strings.
    for file in (ROOT / "hdl").rglob("*.py"):
        assert "from __future__ import annotations" not in file.read_text(), file
