"""make soak: random cases, shrinking, storage and replay of failures."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner

from neuroncore_rtl.run.harness import run as running
from neuroncore_rtl.run.harness.engines.tensor import TensorDevice
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.tb.campaign.soak.runs import (
    COVERED,
    coverage,
    coverage_table,
    expected_values,
    judge_case,
    soak_tasks,
)
from neuroncore_rtl.tb.campaign.soak.shrink import Shrinking, shrink
from neuroncore_rtl.tb.cli import soak
from neuroncore_rtl.tb.cli.commands import app
from neuroncore_rtl.tb.stimulus.tensor_programs import replayed
from neuroncore_rtl.tb.tests.soak import draw, engine_cases, machines
from neuroncore_rtl.tb.tests.soak.case import CaseKind, kind_of
from neuroncore_rtl.tb.tests.soak.draw import PER_MACHINE, SUBJECTS, TURNS, case_of
from neuroncore_rtl.tb.tests.soak.machines import drawn_config
from tests.hdl.tensor.engines import in_shell
from tests.house.tree import ROOT
from tests.tb.campaign.jobs import InProcess

SEED = 3
MACHINES = 2 * len(TURNS)  # every kind, whole cores most often

drawn_case = cache(draw.drawn_case)


def cases(each: int, machines: int = MACHINES):
    return [drawn_case(SEED, machine * PER_MACHINE + n) for machine in range(machines) for n in range(each)]


def test_cases_cover_every_engine_opcode_and_collective():
    rows = [{COVERED: json.dumps(case.covers())} for case in cases(2)]
    missing = {name: values - set(coverage(rows).get(name, ())) for name, values in expected_values().items()}
    # Optional units: each machine has the unit or lacks it.
    assert {name: values for name, values in missing.items() if values and not values <= {"0", "1"}} == {}
    assert set(SUBJECTS) == set(TURNS)
    lines = dict(coverage_table(rows[:1]))
    assert "never" in lines["collective"] and "all_reduce" in lines["collective"]


def test_every_parameter_of_machines_is_drawn():
    found = defaultdict(set)
    for number in range(300):
        for name, value in asdict(drawn_config(np.random.default_rng(number))).items():
            found[name].add(value)
    assert {name for name, values in found.items() if len(values) < 2} == {
        "cores", "hbm_rate", "clock_mhz", "launch_cycles",
    }  # fmt: skip
    for name in ("mac_latency", "add_latency", "vector_latency", "records_ahead", "cast_latency", "scalar_depth"):
        low, high = Config.RANGES[name]
        assert found[name] == set(range(low, high + 1)), name
    instances = [SUBJECTS["instance"].drawn_machine(np.random.default_rng(number)) for number in range(60)]
    instances += [SUBJECTS["collective"].drawn_machine(np.random.default_rng(number)) for number in range(60)]
    for name in ("chips", "topology", "width", "link_bytes", "link_latency"):
        assert len({getattr(one, name) for one in instances}) > 1, name
    assert all(isinstance(one, Instance) and one.core.cores == one.cores for one in instances)


def test_a_case_is_what_its_seed_and_index_say():
    drawn = [f"drawn_case({SEED}, {number * PER_MACHINE + 1}).text" for number in range(len(SUBJECTS))]
    script = f"from neuroncore_rtl.tb.tests.soak.draw import drawn_case; print({', '.join(drawn)}, sep='\\n')"
    folders = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": folders}
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [drawn_case(SEED, number * PER_MACHINE + 1).text for number in range(len(SUBJECTS))]
    assert len({case.text for case in cases(2, len(SUBJECTS))}) == 2 * len(SUBJECTS)
    tasks = soak_tasks(SEED, 10)
    first = [next(tasks) for _ in range(PER_MACHINE + 1)]
    assert len({task.key for task in first}) == len(first) and len({task.group for task in first}) == 2


@pytest.mark.parametrize("number", range(len(SUBJECTS)))
def test_a_file_of_a_case_has_all_of_it(number):
    case = drawn_case(SEED, number * PER_MACHINE)
    again = case_of(case.text)
    assert again.text == case.text and again.lines() == case.lines() and again.covers() == case.covers()
    assert len(case.lines()) >= case.size > 4
    less = case.without({0, case.size - 1})
    assert less.size == case.size - 2 and case_of(less.text).text == less.text
    calmer = list(case.calmer())
    assert all(one.size == case.size and one.text != case.text for one in calmer)
    assert all(one.text != case.text for one in case.plainer())
    smaller = [one for place in range(0, case.size, 1 + case.size // 6) for one in case.smaller(place)]
    assert all(one.text != case.text for one in smaller)
    if case.subject != "riscv":
        assert smaller and any(True for _ in case.plainer())


@dataclass(frozen=True)
class Numbers:
    items: tuple[int, ...]
    machine: int = 9
    disturbed: int = 1

    @property
    def size(self):
        return len(self.items)

    def without(self, numbers):
        return replace(self, items=tuple(item for place, item in enumerate(self.items) if place not in numbers))

    def smaller(self, place):
        for less in {self.items[place] // 2} - {self.items[place]}:
            yield replace(self, items=(*self.items[:place], less, *self.items[place + 1 :]))

    def calmer(self):
        return (replace(self, disturbed=0) for _ in range(self.disturbed))

    def plainer(self):
        return (replace(self, machine=machine) for machine in range(self.machine))


def shrink_numbers(fails, tries=1000, builds=100):
    said = []
    shrinking = Shrinking(fails, tries, builds, said.append)
    return shrink(Numbers(tuple(range(200))), shrinking), shrinking, said


def test_a_failure_is_cut_down_to_what_it_takes():
    def fails(case):
        return 3 in case.items and any(item >= 20 for item in case.items) and case.machine >= 4

    small, shrinking, said = shrink_numbers(fails)
    assert sorted(small.items)[0] == 3 and len(small.items) == 2 and 20 <= max(small.items) < 40
    assert small.machine == 4 and small.disturbed == 0
    assert shrinking.tried < 150 and said
    assert shrink_numbers(fails)[0] == small


def test_what_cuts_down_is_bounded():
    runs = []
    small, shrinking, _ = shrink_numbers(lambda case: runs.append(case) or 3 in case.items, tries=10)
    assert shrinking.tried == len(runs) == 10 and 3 in small.items and small.size < 200
    machines = []
    small, shrinking, _ = shrink_numbers(lambda case: machines.append(case.machine) or case.machine == 9, builds=3)
    assert shrinking.built == 3 and len(set(machines)) == 4 and small.size == 1


def test_what_cannot_be_run_costs_no_try():
    def fails(case):
        if 1 in case.items and 0 not in case.items:
            raise ValueError("1 needs 0")
        return 1 in case.items

    small, shrinking, _ = shrink_numbers(fails)
    assert small.items == (0, 1) and shrinking.tried < 40


def test_kinds_of_failures_are_told_apart():
    for ending, failures, compared, mismatches, kind in (
        (Ending.FINISHED, (), 8, 0, CaseKind.NONE),
        (Ending.FINISHED, (), 0, 0, CaseKind.NOTHING),
        (Ending.FINISHED, (), 8, 1, CaseKind.BYTES),
        (Ending.LIMIT, ("the program must end",), 8, 1, CaseKind.HANG),
        (Ending.FINISHED, ("image 0: the core's error must be none, not vector",), 8, 1, CaseKind.ERROR),
        (Ending.FINISHED, ("image 0: race: vector (1) reads",), 8, 0, CaseKind.RACE),
        (Ending.FINISHED, ("every record that an engine took must be finished",), 8, 0, CaseKind.OTHER),
    ):
        assert kind_of(ending, failures, compared, mismatches) == kind


def run_soak(monkeypatch, tmp_path, *words):
    monkeypatch.setattr(draw, "TURNS", ("tensor",))
    monkeypatch.setattr(soak, "SOAKS", tmp_path / "soak")
    monkeypatch.setattr(soak, "executor_of", lambda settings: InProcess())
    return CliRunner().invoke(app, ["soak", f"SEED={SEED}", *words])


def golden_with_a_defect(device, work, *, doing):
    program, items = work.program, list(engine_cases.items_of(work.program))
    _, words = replayed(device.config, items, program.stationary, program.moving)
    broken = any(getattr(i, "transpose", False) and i.n > 1 for i in items if not isinstance(i, tuple))
    if broken and len(words):
        words = words.copy()
        words[-1, 0] ^= 1
    return Outcome(ending=Ending.FINISHED, cycles=len(items), memories={"psum": words})


def check_that_it_is_found_and_repeated(monkeypatch, tmp_path, done, most):
    assert done.exit_code == 1, done.output
    [(left, path)] = re.findall(r"^  (\d+) of \d+ instructions remain: make soak CASE=(\S+)$", done.output, re.M)
    assert 1 <= int(left) <= most, done.output
    case = soak.read_case(soak.Path(path))
    assert case.size == int(left) and judge_case(case).kind == CaseKind.BYTES
    again = CliRunner().invoke(app, ["soak", f"CASE={path}"])
    assert again.exit_code == 1 and f"FAILED: {CaseKind.BYTES}" in again.output
    assert "golden" in again.output and all(line in again.output for line in case.lines())
    program = soak.Path(path).with_name("program.txt").read_text()
    assert f"make soak CASE={path}" in program and all(line in program for line in case.lines())
    return path


def test_a_defect_is_found_cut_down_kept_and_repeated(monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(engine_cases, "run_device", golden_with_a_defect)
        path = check_that_it_is_found_and_repeated(patch, tmp_path, run_soak(patch, tmp_path, "RUNS=1"), most=3)
        # A multiplication that transposes two columns, the weights that it needs, and the read of a word.
        kinds = [getattr(item, "name", "read") for item in soak.read_case(soak.Path(path)).items]
        assert sorted(kinds) == ["LOAD_STATIONARY", "MULTIPLY_MOVING", "read"]
        assert "1 tasks, 1 known: 0 passed, 1 failed" in run_soak(patch, tmp_path, "RUNS=1").output
    (tmp_path / "case.json").write_text("{}")
    refused = CliRunner().invoke(app, ["soak", f"CASE={tmp_path / 'case.json'}"])
    assert refused.exit_code == 2 and "CASE must be a file that make soak has written" in refused.output
    refused = CliRunner().invoke(app, ["soak", "HOURS=1", "RUNS=1"])
    assert refused.exit_code == 2 and "HOURS, MINUTES or RUNS must be given, not HOURS and RUNS" in refused.output


def test_replayed_programs_are_legal():
    case = drawn_case(SEED, TURNS.index("tensor") * PER_MACHINE)
    loads = {n for n, item in enumerate(case.items) if getattr(item, "name", "") == "LOAD_STATIONARY"}
    with pytest.raises(ValueError, match="MULTIPLY_MOVING"):
        judge_case(case.without(loads))


@pytest.mark.slow
def test_a_defect_of_the_hardware_is_found_cut_down_kept_and_repeated(monkeypatch, tmp_path):
    design = TensorDevice.design
    shell = "    wire [31:0] sum; assign out = {sum[31:1], sum[0] ^ (sum[22:20] == 3'd5)};"

    def broken(device, waves=False, vectors=False):
        made = design(device, waves=waves)  # scalar lanes: the fault is in the Verilog of one
        return replace(made, verilog=in_shell(made.verilog, r"tile_\w+\.mac0", {"out": "sum"}, shell))

    running._built.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(TensorDevice, "design", broken)
        patch.setattr(machines, "drawn_config", lambda rng: Config(rows=4, columns=4))
        check_that_it_is_found_and_repeated(patch, tmp_path, run_soak(patch, tmp_path, "RUNS=1", "TRIES=60"), most=4)
    running._built.cache_clear()
