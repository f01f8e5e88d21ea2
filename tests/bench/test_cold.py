"""Cold builds: builds and lane libraries are kept for later simulations, and never replace existing ones."""

import os

import pytest

from neuroncore_rtl.bench import ways
from neuroncore_rtl.bench.ways import _keep, cold_build
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.run.sim.simulation import BuildFailed

MADE = ("verilator/tensor-1/simulation", "lanes/edge-2.cpp", "lanes/edge-2.v", "lanes/avx2/libedge-2.so")
LEFT = ("verilator/tensor-1.lock", "lanes/avx2/libedge-2.lock", "elaborated/text.v")


def write(folder, names, text):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_builds_are_kept_where_there_are_none(tmp_path):
    made, place = tmp_path / "cold", tmp_path / "place"
    write(made, [*MADE, *LEFT], "cold")
    write(place, MADE[:2], "warm")
    _keep(made, place)
    assert [(place / name).read_text() for name in MADE] == ["warm", "warm", "cold", "cold"]
    assert [name for name in MADE if (made / name).exists()] == [*MADE[:2]]
    assert not (place / LEFT[-1]).exists()


@pytest.mark.parametrize("failure", [BuildFailed("verilator refused it"), MissingTool("verilator is missing")])
def test_why_a_build_fails_is_told(failure, tmp_path, monkeypatch):
    def elaborate(vectors):
        raise failure

    monkeypatch.setattr(ways, "SIM_BUILD", tmp_path)
    with pytest.raises(type(failure), match=f"^{failure}$"):
        cold_build(elaborate, design=None)


def test_a_build_whose_process_dies_has_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(ways, "SIM_BUILD", tmp_path)
    with pytest.raises(BuildFailed, match="the process of a cold build ended before the build"):
        cold_build(lambda vectors: os._exit(1), design=None)
