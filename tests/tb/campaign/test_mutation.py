# amaranth: UnusedElaboratable=no

"""Mutation testing: its simulator, and verdicts and proofs for an exhaustively known unit."""

import json
import re
from collections import Counter
from functools import partial

import numpy as np
import pytest
from amaranth import Module
from amaranth.hdl import Assume, ClockDomain, Fragment
from amaranth.sim import Simulator
from click.testing import CliRunner

from neuroncore_rtl import ROOT
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.campaign.mutation import command, netlist
from neuroncore_rtl.tb.campaign.mutation.equivalence import Finding, prove_equivalent
from neuroncore_rtl.tb.campaign.mutation.harnessed import shell
from neuroncore_rtl.tb.campaign.mutation.library import MutantModel, compile_mutants
from neuroncore_rtl.tb.campaign.mutation.netlist import mutants_of, ports_of, rtlil_of
from neuroncore_rtl.tb.campaign.mutation.run import TestsFailed, mutate
from neuroncore_rtl.tb.campaign.mutation.stand_in import CONTROLS, Endless, unit_stand_in
from neuroncore_rtl.tb.campaign.mutation.unit import add_watcher
from neuroncore_rtl.tb.campaign.mutation.units import MUTATED_UNITS
from neuroncore_rtl.tb.cli.commands import app
from neuroncore_rtl.tb.cli.registry import MUTATED
from neuroncore_rtl.tb.proofs.solver import NoAnswer
from tests.tb.campaign.clamp import Clamp, Rare, Two, Unread

COUNT, SEED = 60, 3


@pytest.fixture(scope="module")
def library_and_mutants(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clamp")
    mutants = mutants_of(rtlil_of(Clamp()), COUNT, SEED, folder)
    return library_of(Clamp(), folder), mutants, folder


def library_of(unit, folder):
    ports = [*CONTROLS, *(port for port, _ in ports_of(unit))]
    return partial(MutantModel, compile_mutants("mutants.v", ports, folder), ports)


EVERY = (*range(256), *reversed(range(256)))  # all inputs, up and down


def outputs(library, mutant: int, inputs=EVERY) -> np.ndarray:
    given = {"p0": np.array([*inputs, 0], np.uint8)[:, None]}
    return library(mutant).trace(given, ["p1", "p2"])[1:].astype(int)


def observe(simulator) -> list:
    dut, seen = simulator[1], []

    async def counts(ctx):
        for number in range(300):
            ctx.set(dut.i, number)
            await ctx.tick()

    async def bench(ctx):
        seen.append(ctx.get(dut.o))
        seen.append(await ctx.tick().sample(dut.i, dut.o, dut.o + 1))
        seen.append(await ctx.tick().sample(dut.i, dut.o).until(dut.large))
        seen.append(await ctx.tick().sample(dut.o).repeat(5))
        await ctx.delay(1e-7)
        seen.append((ctx.get(dut.i), ctx.get(dut.o)))
        await ctx.tick()
        ctx.set(dut.i[0:4], 9)
        seen.append((ctx.get(dut.i), ctx.get(dut.o[7]), ctx.get(dut.large)))

    simulator[0].add_clock(1e-6)
    simulator[0].add_testbench(counts, background=True)
    simulator[0].add_testbench(bench)
    simulator[0].run()
    return seen


def test_a_testbench_sees_no_difference(library_and_mutants):
    m, dut, other = Module(), Clamp(), Clamp()
    m.domains.sync = ClockDomain()
    m.submodules.dut = dut
    seen = observe((Simulator(m), dut))
    assert observe((unit_stand_in(other, library_and_mutants[0](0), 10_000), other)) == seen
    assert len(seen) == 6 and seen[2][1] == 200


def test_a_run_that_does_not_end_is_ended(library_and_mutants):
    dut = Clamp()
    simulator = unit_stand_in(dut, library_and_mutants[0](0), 50)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        while not ctx.get(dut.large):
            await ctx.tick()

    simulator.add_testbench(bench)
    with pytest.raises(Endless, match="the testbench has not ended in 50 cycles"):
        simulator.run()


def test_mutants_are_the_same_for_the_same_seed(library_and_mutants, tmp_path):
    again, other = (mutants_of(rtlil_of(Clamp()), COUNT, seed, tmp_path) for seed in (SEED, SEED + 1))
    assert again == library_and_mutants[1] != other
    # Mutations of clocks and of register outputs are dropped.
    assert COUNT * 0.75 < len(again) == len({mutant.number for mutant in again}) <= COUNT
    assert {mutant.mode for mutant in again} == {"inv", "const0", "const1", "cnot0", "cnot1"}
    assert all(place.startswith("tests/tb/campaign/clamp.py:") for mutant in again for place in mutant.sources)
    assert not any("CLK" in mutant.where for mutant in again)


@pytest.mark.parametrize(
    ("where", "there"),
    [
        ({}, {"first", "second", ""}),
        ({"part": "first"}, {"first"}),
        ({"without": ["first"]}, {"second", ""}),
        ({"without": ["first", "second"]}, {""}),
    ],
)
def test_mutants_are_of_the_part_that_is_asked_for(where, there, tmp_path):
    mutants = mutants_of(rtlil_of(Two()), 60, SEED, tmp_path, **where)
    assert {next((name for name in ("first", "second") if f" of {name}." in str(m)), "") for m in mutants} == there
    # Mutants of the enclosing module do not change the outputs of an excluded submodule.
    outputs = {name for name in ("first", "second") if any(f"-cell {name} -port o " in m.command for m in mutants)}
    assert outputs == ({"first", "second"} - set(where.get("without", ())) if "part" not in where else set())


def test_a_submodule_that_is_left_out_must_be_there(tmp_path):
    with pytest.raises(ValueError, match="without='third': top.unit has no such submodule"):
        mutants_of(rtlil_of(Two()), COUNT, SEED, tmp_path, without=("first", "third"))


@pytest.mark.slow
def test_proofs_of_a_part_are_about_that_part(tmp_path):
    """In a proof of the second clamp only, its inputs may have values that the first clamp never outputs."""
    mutants = mutants_of(rtlil_of(Two()), COUNT, SEED, tmp_path, part="second")
    found = [
        sum(proof.finding.equal for _, proof in prove_equivalent(mutants[:10], 0, tmp_path, 2, part, whole=whole))
        for part, whole in (("", False), ("second", False), ("second", True))
    ]
    assert 0 < found[1] < found[0] == found[2] < 10


def differences(library, mutants, inputs=EVERY) -> dict[int, tuple[bool, bool]]:
    sound = outputs(library, 0, inputs)
    return {mutant.number: tuple((outputs(library, mutant.number, inputs) != sound).any(axis=0)) for mutant in mutants}


def findings(proofs, differs) -> dict[int, Finding]:
    found = {mutant.number: proof.finding for mutant, proof in proofs}
    assert {number: finding.equal for number, finding in found.items()} == {n: not any(differs[n]) for n in found}
    return found


@pytest.mark.slow
def test_proved_equal_is_what_no_input_tells_apart(library_and_mutants):
    library, mutants, folder = library_and_mutants
    differs = differences(library, mutants)
    some = [mutant for mutant in mutants if not any(differs[mutant.number])][:4] + mutants[:8]
    proofs = findings(prove_equivalent(some, 4, folder, 2), differs)
    assert set(proofs.values()) >= {Finding.STEP, Finding.DIFFERS} and Finding.BOUNDED not in proofs.values()


@pytest.mark.slow
def test_bits_of_a_register_that_nothing_reads_are_no_state(tmp_path):
    mutants = mutants_of(rtlil_of(Unread()), 30, SEED, tmp_path)
    changed = {mutant: int(re.search(r" D\[(\d+)\]", mutant.where)[1]) for mutant in mutants if " D[" in mutant.where}
    assert {place < 4 for place in changed.values()} == {False, True}
    for mutant, proof in prove_equivalent(list(changed), 6, tmp_path, 2):
        assert proof.finding == (Finding.INDUCTION if changed[mutant] >= 4 else Finding.DIFFERS), mutant


@pytest.mark.slow
def test_what_never_comes_is_known(tmp_path):
    """Induction proves that a state is unreachable, a row of a table is never read, and some data are never written."""
    mutants = mutants_of(rtlil_of(Rare()), COUNT, SEED, tmp_path)
    library = library_of(Rare(), tmp_path)
    random = np.random.default_rng(SEED)
    inputs = {"p0": random.integers(0, 256, (2000, 1), np.uint8), "rst": random.integers(0, 8, (2000, 1)) == 0}

    def outputs(mutant):
        return library(mutant).trace(inputs, ["p1"]).tolist()

    alike = {mutant for mutant in mutants if outputs(mutant.number) == outputs(0)}
    others = [mutant for mutant in mutants if mutant not in alike][:3]
    findings = {mutant: proof.finding for mutant, proof in prove_equivalent([*alike, *others], 0, tmp_path, 2)}
    assert {mutant for mutant, finding in findings.items() if finding.equal} == alike
    assert Finding.INDUCTION in findings.values()


def test_a_search_that_runs_out_of_stack_has_no_answer(monkeypatch, tmp_path):
    said = "Caused by:\n    wasm trap: call stack exhausted"
    monkeypatch.setattr(netlist, "run_solver", lambda *_: (134, said))
    with pytest.raises(NoAnswer, match="exhausted its stack"):
        netlist.yosys("", tmp_path)


@pytest.mark.slow
def test_what_means_nothing_is_not_looked_at(tmp_path):
    def means(m, clamp):
        m.d.comb += Assume(clamp.i < 100)
        return {"large": 0}

    mutants = mutants_of(rtlil_of(Clamp(), means), COUNT, SEED, tmp_path)
    library = library_of(Clamp(), tmp_path)
    sound = outputs(library, 0)
    unlike = {mutant.number: outputs(library, mutant.number) != sound for mutant in mutants}
    differs = {number: bool(found[:100, 0].any()) for number, found in unlike.items()}
    elsewhere = [mutant for mutant in mutants if unlike[mutant.number].any() and not differs[mutant.number]]
    some = elsewhere[:5] + [mutant for mutant in mutants if differs[mutant.number]][:3]
    assert len(some) == 8
    proofs = {mutant.number: proof.finding.equal for mutant, proof in prove_equivalent(some, 4, tmp_path, 2)}
    assert proofs == {mutant.number: not differs[mutant.number] for mutant in some}


def test_proofs_ask_for_no_more_than_is_legal(library_and_mutants):
    """A mutant that differs only for inputs above 127, which are illegal, is proved equal, but not by a single step."""
    library, mutants, folder = library_and_mutants
    differs, rare = differences(library, mutants), differences(library, mutants, [*range(128), *reversed(range(128))])
    some = [mutant for mutant in mutants if any(differs[mutant.number]) and not any(rare[mutant.number])][:2]
    some += [mutant for mutant in mutants if any(rare[mutant.number])][:1]
    watch = partial(add_watcher, component=Clamp(), legal=lambda m, unit: unit.i < 128)
    proofs = findings(prove_equivalent(some, 4, folder, 2, watch=watch), rare)
    assert Counter(proofs.values()) == {Finding.INDUCTION: 2, Finding.DIFFERS: 1}


@pytest.mark.slow
def test_half_a_test_leaves_exactly_the_holes_that_there_are(library_and_mutants):
    """The test reads only `o` and detects all mutants that change it; holes change only `large`; others are equal."""
    differs = differences(*library_and_mutants[:2])
    outcome = mutate("tests.tb.campaign.clamp:HALF_SEEN", COUNT, SEED, 2)
    holes = {mutant.number for mutant in outcome.holes}
    assert set(outcome.caught) == {number for number, (o, _) in differs.items() if o}
    assert holes == {number for number, (o, large) in differs.items() if large and not o}
    assert set(outcome.proofs) - holes == {number for number, (o, large) in differs.items() if not o and not large}
    print(f"{len(outcome.caught)} caught, {len(holes)} holes, {len(outcome.proofs) - len(holes)} equal")
    assert outcome.caught and holes and len(outcome.proofs) > len(holes)
    assert 0 < outcome.score == len(outcome.caught) / (len(outcome.caught) + len(holes)) < command.BAR
    (line, *_) = command.lines_of_holes([outcome.as_json()])
    assert "clamp.py" in line and "differs in cycle" in line


@pytest.mark.slow
def test_holes_that_are_tried_again_are_those_of_the_record(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    name = "tests.tb.campaign.clamp:HALF_SEEN"
    record = mutate(name, COUNT, SEED, 2).as_json()
    (tmp_path / f"mutate-{name}.json").write_text(json.dumps(record))
    again = command.retry_holes(name, 2)
    for key in ("mutants", "equal", "holes", "score"):
        assert json.loads(json.dumps(again[key])) == json.loads(json.dumps(record[key]))
    assert _caught(again) == _caught(record)
    record["holes"][0]["mutant"] = "inv of nothing"
    (tmp_path / f"mutate-{name}.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match="HOLES=1 must follow a run of the same unit"):
        command.retry_holes(name, 2)


def _caught(record):
    return {test: {how: count for how, count in hows.items() if count} for test, hows in record["caught"].items()}


@pytest.mark.slow
def test_a_test_in_a_harness_leaves_none(tmp_path):
    outcome = mutate("tests.tb.campaign.clamp:HARNESSED", 20, SEED, 2)
    mutants = list(outcome.mutants.values())
    again = mutants_of(rtlil_of(Clamp()), 20, SEED, tmp_path)
    library = library_of(Clamp(), tmp_path)
    assert again == mutants
    assert set(outcome.caught) == {number for number, seen in differences(library, mutants).items() if any(seen)}
    assert not outcome.holes and outcome.caught and outcome.proofs and outcome.score == 1


def test_a_shell_has_the_ports_of_the_module_and_an_argument_that_selects():
    text = shell("clamp", Clamp(), to_verilog("clamp", Clamp()))
    assert text.startswith("module clamp(") and 'plusargs("mutant=%d", mutant)' in text
    assert all(f"assign {part}" in text for part in ("p0[7:0] = i ;", "o = p1[7:0];", "\\large = p2[0:0];"))
    assert all(f".{port}({port})" in text for port in ("mutant", "clk", "rst", "p0", "p1", "p2"))
    assert "  input [7:0] i ;\n" in text and "  output \\large ;\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("UNTESTED", "a test in .* must simulate .* as its entry in MUTATED_UNITS makes it"),
        ("BROKEN", "must pass on .*, but fails: Assert"),
    ],
)
def test_tests_that_say_nothing_are_refused(unit, message):
    with pytest.raises(TestsFailed, match=message):
        mutate(f"tests.tb.campaign.clamp:{unit}", 5, SEED, 1)


@pytest.mark.slow
def test_the_rounding_unit_has_no_holes():
    outcome = mutate("rounding", 60, 1, 2)
    assert outcome.score >= command.BAR, [str(hole) for hole in outcome.holes]


def test_command_line_and_table_name_the_same_units():
    assert tuple(MUTATED_UNITS) == MUTATED


@pytest.mark.parametrize("unit", MUTATED_UNITS.values(), ids=MUTATED_UNITS)
def test_every_unit_can_be_made_and_has_its_tests(unit):
    component = unit.make()
    unit.means(Module(), component)
    assert unit.legal is None or unit.legal(Module(), component) is not None
    assert Fragment.get(component, None).statements
    assert all((ROOT / test.partition("::")[0]).is_file() for test in unit.tests)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["UNIT=nothing"], "UNIT must be an existing one"),
        (["UNIT=adder", "HOLES=1"], "HOLES=1 must follow a run; adder has no record"),
        (["UNIT=adder", "RUN=0"], "RUN=0 must follow a run; there is no record of adder"),
    ],
)
def test_wrong_variables(monkeypatch, tmp_path, words, message):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    result = CliRunner().invoke(app, ["mutate", *words])
    assert result.exit_code and message in result.output
