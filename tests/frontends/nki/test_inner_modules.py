"""Names that published files import from inner modules of the interface."""

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki.dialects.inner_modules import NKIObject
from neuroncore_rtl.spec.config import PRESETS
from tests.frontends.nki.kernels import load_module, result, write_kernel

TINY = PRESETS["tiny"]


def test_parts_of_the_interface_are_in_inner_modules(tmp_path):
    module = load_module(
        tmp_path / "inner.py",
        "from neuronxcc.nki.isa.constants import dge_mode, oob_mode\n"
        "from neuronxcc.nki.isa.neuron_isa import dma_copy\n"
        "from nki.language.constants import sizeinbytes\n"
        "from neuronxcc.nki.typing import scalar, tensor\n"
        "from neuronxcc.starfish.support.util import allclose\n"
        "import neuronxcc.nki.isa as nisa\nimport nki.language as nl\n"
        "sizes = [sizeinbytes(nl.bfloat16), sizeinbytes('float32')]\n"
        "same = dma_copy is nisa.dma_copy and oob_mode.skip and dge_mode.none and tensor[3, 4] and allclose(1, 1)\n"
        "least, most = nl.finfo(nl.float32).min, float(nl.finfo(nl.bfloat16).max)\n"
        "class Sizes(nl.NKIObject):\n    rows: int\n    columns: int = 4\n"
        "made = Sizes(3), Sizes(columns=5, rows=2)\n",
    )
    assert module.sizes == [2, 4] and module.same
    assert (module.least, module.most) == (np.finfo(np.float32).min, 2.0**128 * (1 - 2.0**-8))
    assert [(one.rows, one.columns) for one in module.made] == [(3, 4), (2, 5)]


def test_range_counts_to_the_number_of_a_tile(tmp_path):
    (tmp_path / "beside.py").write_text(
        "def times(numbers, body):\n    for i in range(1, numbers, 2):\n        body()\n"
        "assert list(range(1, 7, 2)) == [1, 3, 5] and isinstance(range(3), range) and not isinstance([], range)\n"
    )
    kernel = write_kernel(tmp_path, """
assert scalar[3] is scalar
tile, number = nl.load(x), nl.load(n)
def double():
    tile[...] = tile * 2.0
times(scalar(number), double)
for _ in range(scalar(number)):
    tile[...] = tile + 1.0
""", older=True, parameters="x, n", stores="tile")  # fmt: skip
    file = tmp_path / "kernel.py"
    file.write_text("from beside import times\nfrom neuronxcc.nki.typing import scalar\n" + file.read_text())
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for n, doublings in ((0, 0), (1, 0), (2, 1), (5, 2)):
        assert np.array_equal(result(kernel, x, np.array([[n]], np.int32)), x * 2**doublings + n)


@pytest.mark.parametrize(
    "line, call, why",
    [
        ("import neuronxcc.nki.nccl as nccl", "nccl.all_reduce()", "a kernel runs on one core"),
        ("from neuronxcc.nki._private.private_api import cc_div", "cc_div()", "internal to the vendor's compiler"),
        ("from neuronxcc.nki.kernels.attention import flash_fwd", "flash_fwd()", "internal to the vendor's compiler"),
        ("from neuronxcc.nki.language.iterators import sync_program", "sync_program(0)", "a kernel runs on one core"),
        ("from nki.language import prelu", "prelu(1)", "an op of nisa.activate2"),
    ],
)
def test_what_the_machine_does_not_have_is_refused_where_it_is_called(tmp_path, line, call, why):
    module = load_module(tmp_path / "inner.py", f"{line}\n\ndef main():\n    {call}\n")
    with pytest.raises(ValueError, match=f"must be replaced, as this machine does not have it: .*{why}"):
        module.main()


def test_unknown_names_of_parts_are_refused(tmp_path):
    with pytest.raises(ImportError, match="nothing"):
        load_module(tmp_path / "inner.py", "from neuronxcc.nki.isa.constants import nothing\n")


def test_fields_of_settings_are_checked():
    class Sizes(NKIObject):
        rows: int

    for wrong, fault in (
        (lambda: Sizes(1, 2), "by position: 2"),
        (lambda: Sizes(rows=1, depth=2), "unknown: depth"),
        (lambda: Sizes(1, rows=2), "twice: rows"),
    ):
        with pytest.raises(TypeError, match=f"Sizes has the fields rows; {fault}$"):
            wrong()


def test_values_without_a_type_are_fields_of_settings_too(tmp_path):
    made = load_module(
        tmp_path / "settings.py",
        "from dataclasses import dataclass\nimport nki.language as nl\n"
        "class Plain(nl.NKIObject):\n    rows: int\n    index = None\n"
        "    def twice(self):\n        return 2 * self.rows\n"
        "@dataclass\nclass Data(nl.NKIObject):\n    rows: int\n    index = None\n"
        "@dataclass\nclass Bare(nl.NKIObject):\n    index = None\n    offset = 0\n"
        "made = Plain(1, index=7), Data(1, index=7), Bare(index=7, offset=8), Bare()\n",
    ).made
    assert [one.index for one in made] == [7, 7, 7, None] and made[2].offset == 8 and made[0].twice() == 2


def test_fields_of_settings_may_get_their_values_later():
    class Sizes(NKIObject):
        rows: int
        columns: int

    sizes = Sizes(rows=3)
    with pytest.raises(AttributeError, match="Sizes.columns has no value; fields with a value: rows"):
        assert sizes.columns
    sizes.columns = 4
    assert (sizes.rows, sizes.columns) == (3, 4)
