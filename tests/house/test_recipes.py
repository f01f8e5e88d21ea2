"""Recipes of CONTRIBUTING.md, each applied as a patch to a copy of the tree, and a check of the result.

`tests/house/recipes/` contains the patch and the check of each recipe. If a patch no longer applies, the recipe has
changed: follow it again, and store `git diff -U2`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import FOLDERS, PACKAGE, ROOT

MOST_FILES = {"format": 8, "instruction": 8, "kernel": 3}  # files that a recipe may touch


def copied(folder: Path) -> Path:
    target = folder / "tree"
    shutil.copytree(ROOT / PACKAGE, target / PACKAGE, symlinks=True)
    for name in (*FOLDERS, "tests", "docs"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    shutil.copy(ROOT / "pyproject.toml", target)
    return target


def run(command: list, folder: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    "recipe", [pytest.param(recipe, marks=[pytest.mark.slow] * (recipe == "kernel")) for recipe in MOST_FILES]
)
def test_recipe_works(recipe, tmp_path):
    patch = ROOT / "tests" / "house" / "recipes" / f"{recipe}.patch"
    count = len(re.findall(r"^diff --git", patch.read_text(), re.MULTILINE))
    assert count <= MOST_FILES[recipe]
    tree = copied(tmp_path)
    check = [sys.executable, "-m", f"tests.house.recipes.{recipe}"]
    before = run(check, tree)
    assert before.returncode != 0 and re.search(r"Error: .*(FP8E2M5|squared_difference|l2norm)", before.stderr)
    applied = run(["git", "apply", "--verbose", str(patch)], tree)
    assert applied.returncode == 0, applied.stderr
    assert applied.stderr.count("Applied patch") == count
    after = run(check, tree)
    assert after.returncode == 0, after.stderr
    page = tree / "docs" / "isa.md"
    text = page.read_text()
    assert run([sys.executable, "-m", f"{PACKAGE}.kernels.text.reference"], tree).returncode == 0
    assert page.read_text() == text, "the reference is part of a patch that changes it"
