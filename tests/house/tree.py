"""Folders of the package, their Python files, and the imports of a file."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["FOLDERS", "PACKAGE", "ROOT", "imports", "modules_in", "statements", "tracked"]

PACKAGE = "neuroncore_rtl"
ROOT = Path(__file__).resolve().parents[2]

FOLDERS = ("spec", "hdl", "golden", "kernels", "run", "frontends", "tb", "bench")
"""Folders of the package, from the lowest layer to the highest."""


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements in it, without the expressions, which are most of a tree."""
    yield node
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
            yield from statements(part)


@cache
def imports(source: str) -> set[str]:
    found = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules_in(*folders: str) -> list[Path]:
    return [file for folder in folders for file in (ROOT / folder).rglob("*.py")]


def tracked() -> list[str]:
    """Return the names of the files in git."""
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
