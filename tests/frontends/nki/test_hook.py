"""Import hook, active only while a kernel's file is loaded."""

import importlib
import logging
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki.dialects import hook, load
from neuroncore_rtl.spec.config import PRESETS
from tests.frontends.nki.kernels import load_module, run_kernel

TINY = PRESETS["tiny"]


def test_nothing_is_left(tmp_path):
    (tmp_path / "beside.py").write_text("import neuronxcc.nki as nki\n@nki.jit\ndef inner(x):\n    return x\n")
    file = tmp_path / "outer.py"
    file.write_text(
        "import os, sys\nfrom beside import inner\nos.environ['NKI_TEST'] = '1'\nsys.path.append('/gone')\n"
    )
    before = dict(sys.modules), list(sys.path), dict(os.environ), list(sys.meta_path)
    assert list(load.kernels_in(load.load_kernel(file, TINY))) == ["inner"]
    for name in ("nki", "neuronxcc", "neuronxcc.nki.isa", "beside", "outer"):
        assert name not in sys.modules
    assert (sys.path, dict(os.environ), sys.meta_path) == before[1:]
    with pytest.raises(ImportError):
        importlib.import_module("neuronxcc.nki")


def test_an_installed_package_comes_back(tmp_path, monkeypatch):
    theirs = type(sys)("nki")
    monkeypatch.setitem(sys.modules, "nki", theirs)
    with hook.answering(TINY, Path(tmp_path)):
        import nki

        assert nki is not theirs and nki.language.tile_size.pmax == 4
    assert sys.modules["nki"] is theirs


def test_libraries_of_the_host_side_have_names_alone(tmp_path):
    text = "import torch_xla.core.xla_model as xm\n\ndef main(x: xm.Thing):\n    return xm.device()\n"
    module = load_module(tmp_path / "host.py", text)
    with pytest.raises(ImportError, match="torch_xla.core.xla_model.device belongs to a library that is not installed"):
        module.main(1)


def test_a_library_that_a_file_cannot_do_without_has_a_name(tmp_path):
    module = load_module(
        tmp_path / "host.py",
        "try:\n    import quicker\nexcept ImportError:\n    quicker = None\n"
        "import tracing.deep as td\nfrom layers import Base\n"
        "log = td.logger(__name__)\n"
        "class Layer(Base):\n    def run(self, x: td.Thing | None):\n        return td.run(x)\n"
        "def size():\n    return 2 * td.SIZE\n",
    )
    assert module.quicker is None and module.Layer.__mro__ == (module.Layer, object)
    for call in (module.Layer().run, lambda x: module.log.info(x), lambda x: module.size()):
        with pytest.raises(ImportError, match="tracing.deep.* belongs to a library that is not installed"):
            call(1)


def test_what_logging_disables_is_as_before(tmp_path):
    load_module(tmp_path / "quiet.py", "import logging\nimport neuronxcc.nki\nlogging.disable(logging.OFF)\n")
    assert logging.root.manager.disable == 0 and not hasattr(logging, "OFF")


def test_modules_of_the_vendor_alone_can_be_imported(tmp_path):
    module = load_module(
        tmp_path / "theirs.py",
        "from neuronxcc.nki._pre_prod_kernels.deep.down import fast\n"
        "import nki\nimport nki.collectives as ncc\nfrom nki.collectives import ReplicaGroup\n"
        "def kernel(x, dtype: nki.dtype, group: ReplicaGroup):\n    fast(x)\n",
    )
    message = "_pre_prod_kernels.deep.down.fast must be replaced.* internal to the vendor's compiler"
    with pytest.raises(ValueError, match=message):
        module.kernel(1, 2, 3)
    with pytest.raises(ValueError, match="collectives.all_gather must be replaced.* runs on one core"):
        module.ncc.all_gather()


def test_modules_that_the_machine_does_not_have(tmp_path):
    with pytest.raises(ImportError, match="nki.simulator is not a module of the interface that this machine has"):
        load_module(tmp_path / "odd.py", "import nki.simulator\n")


def test_a_package_on_the_path_is_of_one_machine(tmp_path, monkeypatch):
    (tmp_path / "there" / "shared").mkdir(parents=True)
    (tmp_path / "there" / "shared" / "__init__.py").write_text("from .sizes import MOST\n")
    (tmp_path / "there" / "shared" / "sizes.py").write_text("import nki.language as nl\nMOST = nl.tile_size.pmax\n")
    monkeypatch.syspath_prepend(tmp_path / "there")
    (tmp_path / "here").mkdir()
    file = tmp_path / "here" / "kernel.py"
    file.write_text("from shared import MOST\n")
    assert [load.load_kernel(file, PRESETS[name]).MOST for name in ("tiny", "full")] == [4, 128]


def test_packages_begin_where_the_outermost_one_does(tmp_path):
    parts = tmp_path / "whole" / "parts" / "more"
    parts.mkdir(parents=True)
    for folder in (tmp_path / "whole", parts):
        (folder / "__init__.py").write_text("")
    (tmp_path / "whole" / "sizes.py").write_text("TWICE = 2.0\n")
    (parts / "beside.py").write_text("from ...sizes import TWICE\n")
    (parts / "kernel.py").write_text("from .beside import TWICE\n")
    assert load.load_kernel(parts / "kernel.py", TINY).TWICE == 2


def test_a_file_of_a_package_imports_from_its_parents(tmp_path):
    (tmp_path / "parts" / "more").mkdir(parents=True)
    (tmp_path / "parts" / "sizes.py").write_text("TWICE = 2.0\n")
    text = "from ..sizes import TWICE\nimport nki\n@nki.jit\ndef kernel(x):\n    return x\n"
    module = load_module(tmp_path / "parts" / "more" / "kernel.py", text)
    assert module.TWICE == 2 and list(load.kernels_in(module)) == ["kernel"]
    assert not [name for name in sys.modules if name.startswith("parts")]


def test_a_kernel_imports_while_it_is_recorded(tmp_path):
    file = tmp_path / "late.py"
    file.write_text(
        "import neuronxcc.nki.language as nl\n\ndef main():\n"
        "    import neuronxcc.nki.isa.constants as constants\n    import neuronxcc.nki.language, math\n"
        "    from neuronxcc.nki.language import bfloat16\n    from neuronxcc.nki._private_kernels.qkv import project\n"
        "    assert constants.oob_mode.skip and neuronxcc.nki.language is nl and bfloat16 is nl.bfloat16 and math.pi\n"
        "    project()\n"
    )
    message = "_private_kernels.qkv.project must be replaced.*internal to the vendor's compiler"
    with pytest.raises(ValueError, match=message):
        run_kernel(f"{file}:main")
    assert "neuronxcc" not in sys.modules


def test_kernels_import_where_they_begin(tmp_path):
    (tmp_path / "beside.py").write_text("import nki.language as nl\nMOST = nl.tile_size.pmax\n")
    lines = (
        "import neuronxcc.nki.language as nl", "import nki.isa as nisa", "from beside import MOST",
        "out = hbm.view(dtype=x.dtype, shape=(MOST, 3))", "tile = sbuf.view(x.dtype, (MOST, 3))",
        "nisa.dma_copy(dst=tile, src=x)", "nisa.dma_copy(dst=out, src=tile)", "return out",
    )  # fmt: skip
    file = tmp_path / "kernel.py"
    file.write_text("def kernel(x):\n" + "".join(f"    {line}\n" for line in lines))
    assert (run_kernel(f"{file}:kernel", np.ones((4, 3), np.float32)).outputs[0] == 1).all()
    assert not {"neuronxcc", "beside"} & {*sys.modules}
    with pytest.raises(ValueError, match=r"must fit kernel\(x\): missing"):
        run_kernel(f"{file}:kernel")


def test_what_a_kernel_imports_again_is_the_same(tmp_path):
    (tmp_path / "kinds.py").write_text("import enum\nclass Kind(enum.Enum):\n    one = 1\n")
    file = tmp_path / "kernel.py"
    file.write_text(
        "import nki\nimport nki.isa as nisa\nimport nki.language as nl\nfrom kinds import Kind as Outer\n"
        "@nki.jit\ndef kernel(x):\n    from kinds import Kind\n    assert Kind is Outer\n"
        "    import nki.language as again\n    assert again is nl\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(dst=out, src=x)\n    return out\n"
    )
    assert (run_kernel(f"{file}:kernel", np.ones((4, 3), np.float32)).outputs[0] == 1).all()
    assert not {"kinds", "nki", "nki.language", "neuronxcc"} & {*sys.modules}
