"""Comparison of both ways: each is measured once, and only times may differ."""

import pytest

from neuroncore_rtl.bench.ways import WaysDiffer, measured_ways, side_by_side
from neuroncore_rtl.run.sim.vectors import LANES_VARIABLE, WAYS, WrongChoice, lanes_choice, use_vectors


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
