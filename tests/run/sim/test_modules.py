"""Cache of modules' Verilog, invalidated when a dependence changes."""

from functools import partial

import pytest

from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.tensor.edge import Edge, EdgeRow
from neuroncore_rtl.run.sim import modules
from neuroncore_rtl.run.sim.modules import ModuleStore
from neuroncore_rtl.spec.config import Config


@pytest.fixture
def store(tmp_path) -> ModuleStore:
    return ModuleStore(tmp_path, "as they were", lambda text: "wrong" not in text)


@pytest.fixture(autouse=True)
def fresh():
    forget()
    yield
    forget()


def forget():
    modules._sources.cache_clear()
    modules._hash_and_imports.cache_clear()


def test_a_text_is_found_by_name_and_arguments(store, tmp_path):
    store.put("edge_8", partial(Edge, 8), "eight")
    assert store.get("edge_8", partial(Edge, 8)) == "eight"
    assert store.get("edge_8", partial(Edge, 9)) is None
    assert store.get("edge_9", partial(Edge, 8)) is None
    assert ModuleStore(tmp_path, "as they are", lambda text: True).get("edge_8", partial(Edge, 8)) is None


def test_a_text_depends_on_how_gates_and_blocks_are_simulated_only_if_it_has_any(store, tmp_path):
    other = ModuleStore(tmp_path, "as they were", lambda text: True, gates="watched", replacements="vectors")
    core = partial(Core, Config(rows=2, columns=2))
    store.put("row", EdgeRow, "module")
    store.put("core", core, "core")
    assert other.get("row", EdgeRow) == "module" and other.get("core", core) is None
    other.put("row", EdgeRow, "call of a library", replaced=True)
    assert other.get("row", EdgeRow) == "module" and other.get("row", EdgeRow, replaced=True) == "call of a library"
    assert store.get("row", EdgeRow, replaced=True) is None


def test_what_cannot_be_used_is_not_found(store):
    store.put("row", EdgeRow, "wrong")
    assert store.get("row", EdgeRow) is None


def test_what_is_made_of_something_without_a_value_is_not_kept(store, tmp_path):
    for build in (partial(Edge, object()), lambda: Edge(8)):
        store.put("edge", build, "text")
        assert store.get("edge", build) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "found"),
    [("hdl/tensor/edge.py", False), ("hdl/arith/decode.py", False), ("hdl/verilog/hierarchy.py", False),
     ("spec/config.py", False), ("hdl/vector/alu.py", True)],
)  # fmt: skip
def test_a_text_depends_on_the_sources_below_it(store, monkeypatch, changed, found):
    store.put("edge_8", partial(Edge, 8), "eight")
    read = modules.Path.read_text
    monkeypatch.setattr(
        modules.Path,
        "read_text",
        lambda path, *args: read(path, *args) + ("\n# changed" if str(path).endswith(changed) else ""),
    )
    forget()
    assert (store.get("edge_8", partial(Edge, 8)) is not None) == found
