"""Examples run as documented and from any folder, and use only modules that a user's kernel may use."""

import os
import runpy
import shutil
import subprocess
import sys

import pytest

from tests.house.tree import PACKAGE, ROOT, imports

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_bit_exact_and_right(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), "tiny"])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "target            rtl, 4 x 4 processing elements" in printed and "bit-exact         yes" in printed


def test_a_copy_outside_the_repository_runs(tmp_path):
    copy = shutil.copy(EXAMPLES[0], tmp_path / "my_kernel.py")
    foreign = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, copy, "tiny"], cwd=tmp_path, env=foreign, capture_output=True, text=True, check=True
    )
    assert "bit-exact         yes" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["my_kernel.py"]


def test_examples_use_what_a_kernel_may_use():
    """They may import `run`, instructions and operands, but neither the testbench nor the hardware."""
    assert len(EXAMPLES) == 5
    allowed = (f"{PACKAGE}.run.run", f"{PACKAGE}.kernels.", f"{PACKAGE}.spec.")
    for path in EXAMPLES:
        ours = {name for name in imports(path.read_text()) if name.startswith(PACKAGE)}
        assert f"{PACKAGE}.run.run" in ours
        assert {name for name in ours if not name.startswith(allowed)} == set()
