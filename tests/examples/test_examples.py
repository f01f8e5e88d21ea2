"""Examples run as documented and from any folder, and use only modules that a user's kernel may use."""

import os
import runpy
import shutil
import subprocess
import sys

import pytest

import neuroncore_rtl
from tests.house.tree import PACKAGE, ROOT, imports

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_bit_exact_and_right(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), "tiny"])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "target            rtl, 4 x 4 processing elements" in printed and "bit-exact         yes" in printed


def test_the_block_tells_its_error_and_its_costly_lines(monkeypatch, capsys):
    path = EXAMPLES[5]
    monkeypatch.setattr(sys, "argv", [str(path), "full", "model"])
    block = runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "error of y against float64: largest 0." in printed
    assert "  attended = attention(program, heads, causal=True).out\n" in printed
    # Heads of queries share keys and values: they are computed once for each of the two heads.
    assert block["KEY_HEADS"] == 2 and block["QUERY_HEADS"] == 4


def test_a_copy_outside_the_repository_runs(tmp_path):
    copy = shutil.copy(EXAMPLES[0], tmp_path / "my_kernel.py")
    foreign = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, copy, "tiny"], cwd=tmp_path, env=foreign, capture_output=True, text=True, check=True
    )
    assert "bit-exact         yes" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["my_kernel.py"]


def test_examples_use_what_a_kernel_may_use():
    paths = [*EXAMPLES, *(ROOT / "examples/jax").glob("*.py")]
    assert len(paths) == 11
    public = {f"{PACKAGE}.{name}" for name in dir(neuroncore_rtl)} | {f"{PACKAGE}.run.sim.packages.require_packages"}
    for path in paths:
        ours = {name for name in imports(path.read_text()) if name.startswith(f"{PACKAGE}.")}
        assert ours & {f"{PACKAGE}.run", f"{PACKAGE}.jit"}
        others = {name for name in ours - public if not name.startswith((f"{PACKAGE}.kernels.", f"{PACKAGE}.spec."))}
        assert others == set()
