"""Wheel: an installed package has everything that it needs, and writes to the user's cache only."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from neuroncore_rtl.__main__ import app
from neuroncore_rtl.run.sim import packages
from tests.house.tree import ROOT, tracked

BUILD = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The contents of a wheel that was made of the files in git."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    packed = subprocess.run(["tar", "--create", *tracked()], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "--extract"], cwd=source, input=packed.stdout, check=True)
    subprocess.run([sys.executable, "-c", BUILD, folder], cwd=source, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "packages")
    return folder / "packages"


def test_jax_finds_the_plug_in(installed):
    (file,) = installed.glob("*.dist-info/entry_points.txt")
    assert "[jax_plugins]\nneuroncore-rtl = neuroncore_rtl.frontends.pjrt\n" in file.read_text()


@pytest.fixture
def command(installed, tmp_path):
    """Run the installed program in an empty folder, and check that it stays empty; call it with words."""
    here, cache = tmp_path / "here", tmp_path / "cache"
    here.mkdir()

    def run(*words: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(cache)}
        environment.pop("NEURONCORE_RTL_FILES", None)
        python = [sys.executable, "-m", "neuroncore_rtl"]
        finished = subprocess.run([*python, *words], cwd=here, env=environment, capture_output=True, text=True)
        assert [*here.iterdir()] == [] and "Traceback" not in finished.stderr
        return finished

    return run


def test_data_files_are_inside(installed):
    kinds = (".v", ".vh", ".sv", ".cpp", ".sh", ".c", ".h", ".S", ".ld", ".json", ".npz", ".txt", ".typed")
    kinds += (".html", ".css", ".js")
    rooms = {path.name for path in (ROOT / "neuroncore_rtl").iterdir() if path.is_symlink()}
    wanted = [name for name in tracked() if name.partition("/")[0] in rooms and not name.endswith((".py", ".md"))]
    assert len(wanted) > 30 and all(name.endswith(kinds) for name in wanted)
    assert [name for name in wanted if not (installed / "neuroncore_rtl" / name).is_file()] == []


def test_help_names_the_commands_of_the_program(command):
    text = command("help").stdout
    assert "neuroncore-rtl profile " in text and "neuroncore-rtl verilog " in text and "make " not in text
    assert "neuroncore-rtl help matmul ALL=1" in " ".join(command("help", "matmul").stdout.split())


@pytest.mark.slow  # the timing model compiles its loops for the new cache
def test_run_writes_to_the_cache_and_prints_where(command, tmp_path):
    finished = command("sim", "matmul", "TARGET=model", "PRESET=nano", "M=4", "K=4", "N=4")
    assert finished.returncode == 0, finished.stderr
    record = Path(finished.stdout.split("record: ")[1].strip())
    assert record.parent == tmp_path / "cache" / "neuroncore-rtl" / "sim_build" / "results"
    assert json.loads(record.read_text())["cycles"] > 0


@pytest.mark.parametrize("target", ["docs", "figures", "mutate"])
def test_command_that_needs_a_clone_says_so(target, monkeypatch):
    monkeypatch.setattr(packages, "IN_CLONE", False)
    result = CliRunner().invoke(app, [target])
    rule = f"{target} needs a clone of the repository, with its documents and tests: run make there"
    assert result.exit_code == 1 and f"Error: {rule}\n" in result.stderr


def test_sweep_knows_the_versions_of_its_packages(installed, tmp_path):
    code = "from neuroncore_rtl.tb.campaign.task import sources; print(sources())"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert len(finished.stdout.strip()) == 32, finished.stderr
