"""Comparison of both ways: each is measured once, only times may differ, and a line describes the machine."""

import pytest

from neuroncore_rtl.bench.run import machine, machine_line, processor
from neuroncore_rtl.bench.ways import WaysDiffer, measured_ways, side_by_side
from neuroncore_rtl.run.sim.vectors import (
    LANES_VARIABLE,
    LEVEL_VARIABLE,
    WAYS,
    WrongChoice,
    lanes_choice,
    level,
    use_vectors,
)


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    monkeypatch.delenv(LANES_VARIABLE, raising=False)


def measure():
    return {"cycles": 1200, "bit_exact": True}, {"cycles_per_s": 600.0 if use_vectors() else 40.0}


def test_ways_are_two_calls_and_a_row():
    assert side_by_side("device", measure) == {
        "cycles": 1200,
        "bit_exact": True,
        "vector": {"cycles_per_s": 600.0},
        "scalar": {"cycles_per_s": 40.0},
        "speed_up": 15.0,
    }


@pytest.mark.parametrize("way", WAYS)
def test_one_way_that_is_chosen_is_measured_alone(way):
    with lanes_choice(way):
        found = side_by_side("device", measure)
        assert measured_ways() == (way,)
    assert found.keys() == {"cycles", "bit_exact", way}
    assert measured_ways() == WAYS


@pytest.mark.parametrize("name, values", [("cycles", (1200, 1201)), ("bit_exact", (True, False))])
def test_ways_that_differ_are_an_error(name, values):
    def differing():
        done, speed = measure()
        return done | {name: values[not use_vectors()]}, speed

    message = f"{name} of the tensor engine must be the same in both ways, not {values[0]} .vector. and {values[1]} "
    with pytest.raises(WaysDiffer, match=message):
        side_by_side("tensor engine", differing)


def test_wrong_way_is_refused(monkeypatch):
    monkeypatch.setenv(LANES_VARIABLE, "sideways")
    with pytest.raises(WrongChoice, match="LANES must be one of vector, scalar, not 'sideways'"):
        side_by_side("device", measure)


XEON = {"cpu": "Xeon", "cores": 2}


@pytest.mark.parametrize(
    "text, name", [("flags\t: fpu\nmodel name\t: Xeon @ 2 GHz\nmodel name\t: Xeon\n", "Xeon @ 2 GHz"), ("", None)]
)
def test_processor_is_named(text, name, tmp_path):
    information = tmp_path / "cpuinfo"
    information.write_text(text)
    assert processor(information) == (name or processor(tmp_path / "nothing"))
    assert processor()


def test_level_is_that_of_the_vectors(monkeypatch):
    monkeypatch.setenv(LEVEL_VARIABLE, "plain")
    level.cache_clear()
    assert (machine(WAYS)["vectors"], machine(["scalar"])["vectors"]) == ("plain", None)
    level.cache_clear()


@pytest.mark.parametrize(
    "ways, vectors, line",
    [
        (WAYS, "avx512", "Xeon, 2 cores, LANES=vector (avx512, 16 lanes at a time) beside LANES=scalar"),
        (["vector"], "plain", "Xeon, 2 cores, LANES=vector (plain, 4 lanes at a time)"),
        (["scalar"], None, "Xeon, 2 cores, LANES=scalar"),
        ([], None, "Xeon, 2 cores"),
    ],
)
def test_machine_is_a_line(ways, vectors, line):
    assert machine_line(XEON | {"ways": ways, "vectors": vectors}) == line
