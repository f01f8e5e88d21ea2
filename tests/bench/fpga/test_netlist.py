"""The array as ECP5 cells: products equal golden's bits, and a faulty multiplier is detected."""

import re
from dataclasses import replace

import pytest

from neuroncore_rtl.bench.fpga.netlist import cell_models, check, netlist_device
from neuroncore_rtl.spec.config import Config


@pytest.mark.slow
def test_a_netlist_multiplies_as_golden_does():
    device, netlist = netlist_device(Config(rows=2, columns=2, mac_latency=4))
    assert netlist.cells["MULT18X18D"] == 4 and "datapath_2x2_latency4_bits12" in device.replaced
    compared, mismatches = check(device)
    assert compared > 50 and mismatches == 0
    broken = device.netlist.replace(", a} * {", ", a} + {")
    assert broken != device.netlist and check(replace(device, netlist=broken))[1] > 0


def test_models_are_those_of_the_cells_and_of_what_they_are_made_of():
    models = cell_models({"CCU2C": 3, "MULT18X18D": 1, "$scopeinfo": 1})
    assert sorted(re.findall(r"^module (\w+)", models, re.MULTILINE)) == ["CCU2C", "LUT2", "LUT4", "MULT18X18D"]
