"""Choice of vector or scalar lanes."""

import os

import cocotb_tools.config
import pytest

from neuroncore_rtl.run.harness import run
from neuroncore_rtl.run.harness.engines.tensor import TensorDevice
from neuroncore_rtl.run.sim import simulation, vectors
from neuroncore_rtl.spec.config import PRESETS
from tests.hdl.simulation import slow
from tests.tb.reports import passed


@pytest.mark.parametrize("test", ["matmul", *slow("vector", "activation")])
def test_both_ways_are_right_in_the_same_cycles(test):
    words, reports = "TARGET=engine PRESET=tiny" if test == "matmul" else "PRESET=tiny COUNT=200", []
    for way in vectors.WAYS:
        with vectors.lanes_choice(way):
            reports.append(passed(test, words).as_json())
    names = {"cycles", "compared", "counters", "changed", "instructions"} & reports[0].keys()
    assert {"cycles", "compared", "counters"} <= names
    assert [reports[0][name] for name in names] == [reports[1][name] for name in names]


def test_vectors_are_in_the_build_if_they_are_wanted_and_no_waveform_is(monkeypatch):
    device = TensorDevice(config=PRESETS["tiny"])
    monkeypatch.delenv(vectors.LANES_VARIABLE, raising=False)
    monkeypatch.setattr(simulation, "_compile", lambda *arguments: None)  # the simulation is not run
    monkeypatch.setattr(run, "_built", run._built.__wrapped__)
    assert run.build_device(device).vectors
    with vectors.lanes_choice("scalar"):
        assert not run.build_device(device).vectors
    assert run.build_device(device).vectors and not run.build_device(device, waves=True).vectors


def test_choice_of_a_command_ends_with_it(monkeypatch):
    monkeypatch.setenv(vectors.LANES_VARIABLE, "scalar")
    with vectors.lanes_choice("vector"):
        assert vectors.use_vectors()
    assert not vectors.use_vectors()
    with vectors.lanes_choice(None):
        assert not vectors.use_vectors()


@pytest.mark.parametrize(
    ("variable", "ask"),
    [(vectors.LANES_VARIABLE, vectors.use_vectors), (vectors.LEVEL_VARIABLE, vectors.level.__wrapped__)],
)
def test_wrong_choice_is_refused_with_what_there_is(variable, ask, monkeypatch):
    monkeypatch.setenv(variable, "sideways")
    with pytest.raises(vectors.WrongChoice, match=f"{variable} must be one of .*, not 'sideways'"):
        ask()


def test_libraries_come_before_those_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    build = simulation.Build(directory=tmp_path, sim="verilator", top="top", waves=False, fresh=False, vectors=True)
    expected = [str(cocotb_tools.config.libs_dir), str(vectors.search_path()), "/elsewhere"]
    assert simulation._library_path(build).split(os.pathsep) == expected
