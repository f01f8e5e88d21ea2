"""Imports of the interface are answered while a kernel's file is loaded, and nothing is left of it."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from neuroncore_rtl.frontends.nki.hook import answering
from neuroncore_rtl.frontends.nki.load import kernels_in, load
from neuroncore_rtl.spec.config import PRESETS

TINY = PRESETS["tiny"]


def test_nothing_is_left(tmp_path):
    (tmp_path / "beside.py").write_text("import neuronxcc.nki as nki\n@nki.jit\ndef inner(x):\n    return x\n")
    file = tmp_path / "outer.py"
    file.write_text(
        "import os, sys\nfrom beside import inner\nos.environ['NKI_TEST'] = '1'\nsys.path.append('/gone')\n"
    )
    before = dict(sys.modules), list(sys.path), dict(os.environ), list(sys.meta_path)
    module = load(file, TINY)
    assert list(kernels_in(module)) == ["inner"]
    for name in ("nki", "neuronxcc", "neuronxcc.nki.isa", "beside", "outer"):
        assert name not in sys.modules
    assert (sys.path, dict(os.environ), sys.meta_path) == before[1:]
    with pytest.raises(ImportError):
        importlib.import_module("neuronxcc.nki")


def test_an_installed_package_comes_back(tmp_path, monkeypatch):
    theirs = type(sys)("nki")
    monkeypatch.setitem(sys.modules, "nki", theirs)
    with answering(TINY, Path(tmp_path)):
        import nki

        assert nki is not theirs and nki.language.tile_size.pmax == 4
    assert sys.modules["nki"] is theirs


def test_libraries_of_the_host_side_have_names_alone(tmp_path):
    file = tmp_path / "host.py"
    file.write_text("import torch_xla.core.xla_model as xm\n\ndef main(x: xm.Thing):\n    return xm.device()\n")
    module = load(file, TINY)
    with pytest.raises(ImportError, match="torch_xla.core.xla_model.device is of a library that is not installed"):
        module.main(1)


def test_modules_that_the_machine_does_not_have(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text("import nki.collectives\n")
    with pytest.raises(ImportError, match="nki.collectives is not a module of the interface that this machine has"):
        load(file, TINY)


def test_a_file_of_a_package_imports_from_its_parents(tmp_path):
    (tmp_path / "parts" / "more").mkdir(parents=True)
    (tmp_path / "parts" / "sizes.py").write_text("TWICE = 2.0\n")
    file = tmp_path / "parts" / "more" / "kernel.py"
    file.write_text("from ..sizes import TWICE\nimport nki\n@nki.jit\ndef kernel(x):\n    return x\n")
    module = load(file, TINY)
    assert module.TWICE == 2 and list(kernels_in(module)) == ["kernel"]
    assert not [name for name in sys.modules if name.startswith("parts")]
