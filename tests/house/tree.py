"""The tree: its folders, their Python files, and what a file imports."""

import ast
from functools import cache
from pathlib import Path

__all__ = ["FOLDERS", "PACKAGE", "ROOT", "imports", "modules_in"]

PACKAGE = "neuroncore_rtl"
ROOT = Path(__file__).resolve().parents[2]

FOLDERS = ("spec", "hdl", "golden", "kernels", "run", "frontends", "tb", "bench")
"""The folders of the package, from the lowest floor to the highest."""


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
