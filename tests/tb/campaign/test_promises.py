# amaranth: UnusedElaboratable=no

"""Guarantees about submodules' outputs in proofs."""

import re
from functools import partial

import pytest

from neuroncore_rtl.tb.campaign.mutation.equivalence import Finding, prove_equivalent
from neuroncore_rtl.tb.campaign.mutation.netlist import (
    PREPARED,
    Mutant,
    mutants_of,
    ports_of,
    rtlil_of,
    select_observed,
)
from neuroncore_rtl.tb.campaign.mutation.unit import add_watcher
from tests.tb.campaign.clamp import Clamp, Two

LIMIT = 200  # a clamp's largest output


def limits(folder, bits):
    mutants_of(rtlil_of(Two()), 1, 1, folder)
    second = re.search(r"^module \\top\.unit\.second\n.*?^end$", (folder / PREPARED).read_text(), re.M | re.S)
    (cell,) = re.findall(r"cell \$gt (\S+)", second[0])
    command = f"-mode inv -module top.unit.second -cell {cell} -port B -portbit"
    return [Mutant(1 + bit, f"{command} {bit}", "inv", f"bit {bit}", ()) for bit in bits]


ALL = range(1, 8)


@pytest.mark.parametrize(
    ("bits", "most", "finding"),
    [
        ((3, 4), LIMIT, Finding.STEP),
        pytest.param(ALL, LIMIT, Finding.STEP, marks=pytest.mark.slow),
        pytest.param(ALL, 255, Finding.INDUCTION, marks=pytest.mark.slow),
    ],
)
def test_a_step_takes_a_promise_for_true(bits, most, finding, tmp_path):
    """A second clamp with a higher limit has no effect; one induction step proves this with the first clamp's range."""
    mutants = limits(tmp_path, bits)
    promise = partial(add_watcher, component=Clamp(), legal=lambda m, clamp: clamp.o <= most, part="first")
    proofs = {
        mutant.number: proof.finding for mutant, proof in prove_equivalent(mutants, 0, tmp_path, 1, promise=promise)
    }
    assert proofs == {1 + bit: finding if LIMIT ^ 1 << bit > LIMIT else Finding.UNDECIDED for bit in bits}


def test_promises_do_not_contradict_themselves(tmp_path):
    promise = partial(
        add_watcher, component=Clamp(), legal=lambda m, clamp: (clamp.o < 5) & (clamp.o > 9), part="first"
    )
    with pytest.raises(RuntimeError, match="Assumptions are unsatisfiable"):
        list(prove_equivalent(limits(tmp_path, (4,)), 0, tmp_path, promise=promise))


def test_promises_are_of_ports_that_are_there(tmp_path):
    """The output `large` of the first of two clamps is unused, so the netlist has no such port."""
    limits(tmp_path, ())
    with pytest.raises(ValueError, match=r"top\.unit\.first must have the ports that `legal` reads, but lacks large"):
        add_watcher((tmp_path / PREPARED).read_text(), Clamp(), lambda m, clamp: clamp.large, "first")


def test_what_is_legal_is_known_of_an_output_that_another_stands_for(tmp_path):
    """A rule for legal inputs may read an output that `means` replaces, although the proof's netlist lacks it."""
    mutants_of(rtlil_of(Clamp(), lambda m, clamp: {"o": clamp.o[0]}), 1, 1, tmp_path)
    text, clamp = select_observed((tmp_path / PREPARED).read_text()), Clamp()
    (name,) = (port.name for port, signal in ports_of(clamp) if signal is clamp.o)
    assert f"connect \\{name} \\{name}\n" in add_watcher(text, clamp, lambda m, clamp: clamp.o <= LIMIT)
