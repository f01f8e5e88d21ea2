"""Tests of the import-linter contracts in `make lint`, and other rules of the folders."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.test_recipes import copied
from tests.house.tree import FOLDERS, PACKAGE, ROOT, imports, modules_in


def broken(tree: Path) -> str:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, env={"PYTHONPATH": str(tree)}).stdout


UPWARD = {
    "golden/arith/up.py": "from neuroncore_rtl.hdl.arith import mac",
    "spec/up.py": "def late():\n    from neuroncore_rtl.golden import arith",
    "run/up.py": "import neuroncore_rtl.tb.cli.registry",
    "hdl/up.py": "import numpy",
    "frontends/nki/trace/up.py": "from neuroncore_rtl.run.program import run",
}
"""Imports that a contract forbids, by file."""


def test_contracts_hold():
    assert "0 broken" in broken(ROOT)


def test_contracts_notice_what_they_forbid(tmp_path):
    tree = copied(tmp_path)
    for file, source in UPWARD.items():
        (tree / file).write_text(f"{source}\n")
    (tree / "golden" / "link" / "back.py").write_text("from neuroncore_rtl.golden.core import forth\n")
    (tree / "golden" / "core" / "forth.py").write_text("from neuroncore_rtl.golden.link import back\n")
    text = broken(tree)
    for file in UPWARD:
        assert file.removesuffix(".py").replace("/", ".") in text, file
    assert "No cycles are allowed in neuroncore_rtl.golden." in text


def test_one_name_is_taken_outside():
    """A folder's bare name could belong to another installed package."""
    files = modules_in(*FOLDERS, "tests")
    assert {(file.name, i) for file in files for i in imports(file.read_text()) if i.split(".")[0] in FOLDERS} == set()


def test_hardware_does_not_postpone_annotations():
    # `from __future__ import annotations` converts port declarations of Amaranth components to strings.
    for file in modules_in("hdl"):
        assert "from __future__ import annotations" not in file.read_text(), file


@pytest.mark.parametrize("folder", FOLDERS)
def test_package_links_every_folder_and_rooms_have_few_files(folder):
    link = ROOT / PACKAGE / folder
    assert link.is_symlink() and link.resolve() == ROOT / folder
    for room in {file.parent for file in (ROOT / folder).rglob("*") if "__pycache__" not in file.parts}:
        assert len([file.name for file in room.iterdir() if file.is_file()]) <= 24, room
