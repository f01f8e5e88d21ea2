"""Timing paths from register to register in a netlist of modules."""

import json

import pytest

from neuroncore_rtl.run.fpga.paths import (
    CARRY,
    CARRY_IN,
    CARRY_OUT,
    CLOCK_TO_Q,
    LUT,
    MULTIPLIER,
    RAM_TO_Q,
    SELECT,
    WIRE,
    estimate_paths,
    estimate_table,
)
from neuroncore_rtl.run.fpga.synthesis import Netlist
from neuroncore_rtl.run.shell import terminal


def cell(kind, **ports):
    return {"type": kind, "connections": {port: [bit] for port, bit in ports.items()}}


def module(names, ports=None, attributes=(), **cells):
    netnames = {name: {"bits": [bit], "hide_name": 0, "attributes": {}} for name, bit in names.items()}
    made = {name: {"direction": "input", "bits": [bit]} for name, bit in (ports or {}).items()}
    return {"attributes": dict.fromkeys(attributes, 1), "netnames": netnames, "ports": made, "cells": cells}


def paths(folder, **modules):
    (folder / "netlist.json").write_text(json.dumps({"modules": modules}))
    return {row["start"][0]: row for row in estimate_paths(Netlist(folder))}


def test_a_path_goes_through_modules(tmp_path):
    inner = module({"mine": 7}, {"a": 5, "z": 7}, first=cell("LUT4", A=5, Z=6), second=cell("LUT4", D=6, Z=7))
    top = module(
        {"start": 2, "end": 9, "other": 4},
        attributes=("top",),
        begins=cell("TRELLIS_FF", DI=4, Q=2),
        half=cell("half", a=2, z=3),
        inverter=cell("LUT4", B=3, Z=8),
        ends=cell("TRELLIS_FF", DI=8, Q=9),
    )
    (row,) = [row for row in paths(tmp_path, top=top, half=inner).values() if row["start"][0] == "start"]
    assert row["ns"] == pytest.approx(CLOCK_TO_Q + 3 * (LUT + WIRE) + WIRE)
    assert row["end"][0] == "end" and [name for name, _ in row["through"]] == ["mine"]


WAYS = {
    "a wire": ({}, 2, CLOCK_TO_Q),
    "a multiplexer's data": ({"m": cell("PFUMX", ALUT=2, BLUT=90, Z=3)}, 3, CLOCK_TO_Q + SELECT),
    "a multiplexer's choice": ({"m": cell("L6MUX21", D0=90, D1=91, SD=2, Z=3)}, 3, CLOCK_TO_Q + SELECT + WIRE),
    "a multiplier": ({"m": cell("MULT18X18D", A0=2, B0=90, P3=3)}, 3, CLOCK_TO_Q + MULTIPLIER + WIRE),
    "a carry chain": (
        {"a": cell("CCU2C", A0=2, COUT=20), "b": cell("CCU2C", CIN=20, COUT=21), "c": cell("CCU2C", CIN=21, S1=3)},
        3,
        CLOCK_TO_Q + CARRY_IN + WIRE + CARRY + CARRY_OUT,
    ),
    "a block RAM": ({"m": cell("DP16KD", ADA3=2, DOB5=3), "l": cell("LUT4", C=3, Z=4)}, 4, RAM_TO_Q + LUT + WIRE),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_cells_take(way, tmp_path):
    cells, last, ns = WAYS[way]
    ends = {"begins": cell("TRELLIS_FF", Q=2), "ends": cell("TRELLIS_FF", CE=last, Q=99)}
    names = {"start": 3 if way == "a block RAM" else 2, "end": 99}
    found = paths(tmp_path, top=module(names, attributes=("top",), **ends, **cells))
    assert found["start"]["ns"] == pytest.approx(ns + WIRE) and found["start"]["end"][0] == "end"


def test_lanes_have_one_row_and_loops_none(tmp_path):
    lanes = {f"ff{n}": cell("TRELLIS_FF", DI=10 + n, Q=10 + n) for n in range(4)}
    loop = {"loop": cell("LUT4", A=50, Z=50), "out": cell("TRELLIS_FF", DI=50, Q=60)}
    names = {f"lane{n}.held": 10 + n for n in range(4)}
    found = paths(tmp_path, top=module(names, attributes=("top",), **lanes, **loop))
    assert [name for name in found if name.startswith("lane")] == ["lane0.held"]
    console = terminal()
    with console.capture() as said:
        console.print(estimate_table(list(found.values())))
    assert "lane0.held" in said.get()
