"""Sweep files: valid runs, or an error with file and key."""

import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.campaign.sweep_spec import sweep_of
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.cli.sweep import task_of
from tests.house.tree import ROOT


def points(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return sweep_of(file, command_named).points


def test_lists_are_combined_and_the_last_turns_fastest(tmp_path):
    found = points(tmp_path, 'test = "matmul"\nseeds = 2\n[settings]\nPRESET = "tiny"\n[sweep]\nM = [4, 8]\nSTALL = 30')
    values = [tuple(point.settings.values[name] for name in ("M", "SEED", "STALL", "PRESET")) for point in found]
    assert values == [(4, 1, 30, "tiny"), (4, 2, 30, "tiny"), (8, 1, 30, "tiny"), (8, 2, 30, "tiny")]
    assert {point.swept for point in found} == {("M", "SEED")}


def test_several_variables_go_together(tmp_path):
    found = points(tmp_path, '[sweep]\ntest = "matmul"\n"M K N" = [4, [1, 2, 3]]')
    assert [(p.settings.m, p.settings.k, p.settings.n) for p in found] == [(4, 4, 4), (1, 2, 3)]


def test_blocks_have_tests_of_their_own_and_a_run_is_there_once(tmp_path):
    found = points(tmp_path, 'test = "matmul"\n[[sweep]]\nM = [4, 64]\n[[sweep]]\nM = [64, 4]\n[[sweep]]\ntest = "mac"')
    assert [point.test for point in found] == ["matmul", "matmul", "mac"]
    assert len({task.key for task in map(task_of, found)}) == 3


def test_what_changes_a_result_changes_the_key_and_what_changes_a_build_the_group(tmp_path):
    text = 'test = "matmul"\n[settings]\nPRESET = "tiny"\n[sweep]\nM = [4, 8]\nMAC_LATENCY = [1, 2]'
    tasks = [*map(task_of, points(tmp_path, text))]
    assert len({task.key for task in tasks}) == 4 and len({task.group for task in tasks}) == 2
    assert tasks[0].label == "matmul-m4-mac_latency1"
    assert len({task.folder for task in tasks}) == 4
    again = map(task_of, points(tmp_path, text.replace("4, 8", "8, 4")))
    assert {task.key for task in again} == {task.key for task in tasks}
    [modelled] = map(task_of, points(tmp_path, '[sweep]\ntest = "matmul"\nTARGET = "model"'))
    assert modelled.group == ""


def test_a_file_counts_by_what_is_in_it(tmp_path):
    (tmp_path / "a.txt").write_text("3f80 3f80 0\n")
    text = f'[sweep]\ntest = "mac"\nVECTORS = "{tmp_path / "a.txt"}"'
    [before] = map(task_of, points(tmp_path, text))
    (tmp_path / "a.txt").write_text("4000 3f80 0\n")
    [after] = map(task_of, points(tmp_path, text))
    assert before.key != after.key and before.label == after.label


@pytest.mark.parametrize(
    "text, said",
    [
        ("test = ", "SPEC must be a file of TOML; .*mine.toml: "),
        ('tests = "matmul"', "a key must be one of test, seeds, settings, sweep, measures, baseline, not 'tests'; did"),
        ("[sweep]\nM = 1", "test must be the name of a TEST in sweep or at the top, not None"),
        ('[sweep]\ntest = "gone"', "sweep: TEST must be one of matmul, .*, not 'gone'"),
        ('test = "matmul"\n[sweep]\nM = [1, 0]', "sweep, M: M must be an integer from 1 to 1048576, not '0'"),
        (
            'test = "matmul"\n[sweep]\nMM = [1]',
            "sweep, MM: a variable of matmul must be an existing one, not 'MM'; did you mean M\\?",
        ),
        ('test = "matmul"\n[settings]\nDTYPE = "bf17"', "settings, DTYPE: DTYPE must be one of .*, not 'bf17'"),
        ('test = "matmul"\n[sweep]\nM = []', "sweep, M: a list must have a value"),
        ('test = "matmul"\n[sweep]\n"M K" = [[1, 2, 3]]', r"sweep, M K: \[1, 2, 3\] must have 2 values, not 3"),
        ('test = "matmul"\n[sweep]\n"M K" = [1, 2]\nM = 3', "sweep, M: must be given once, not 2 times"),
        ('test = "matmul"\nseeds = 2\n[sweep]\nSEED = [7, 8]', "sweep, SEED: must not be a list beside seeds"),
        ('test = "matmul"\n[sweep]\nM = {a = 1}', "sweep, M: a value must be text or a number, not {'a': 1}"),
        ('test = "matmul"\nsettings = 1', "settings must be a table, not 1"),
        ('test = "matmul"\nsweep = [1]', "sweep must be a table, not 1"),
        ('test = "matmul"\nseeds = 0', "seeds must be an integer from 1 to 100000, not 0"),
        ('test = "matmul"\nmeasures = "cycles"', "measures must be a list of names, such as .*, not 'cycles'"),
        ('test = "matmul"\nbaseline = 7', 'baseline must be "first" or values of variables, such as .*, not 7'),
        ('test = "matmul"\nbaseline = {M = 4}\n[sweep]\nM = [8]', "baseline must be a run of the sweep, not M=4"),
        ('test = "matmul"\nbaseline = {Q = 4}', "baseline must be a run of the sweep, not Q=4"),
        ('test = "mac"\n[[sweep]]\n[[sweep]]\nM = 1', "sweep 2, M: a variable of mac must be one of"),
        ('test = "matmul"\n[sweep]\nHBM_BYTES = [9]', "sweep: hbm_bytes must be"),
        (
            'test = "matmul"\nseeds = 1000\n[sweep]\n"M" = [1, 2]\n"K" = [' + "1," * 60 + "]",
            "sweep must have at most 100,000 combinations, not 120,000",
        ),
    ],
)
def test_what_is_not_valid_is_refused(tmp_path, text, said):
    with pytest.raises(UsageError, match=said) as raised:
        points(tmp_path, text)
    assert str(tmp_path / "mine.toml") in str(raised.value)


def test_the_example_is_valid():
    found = sweep_of(ROOT / "examples" / "sweep.toml", command_named).points
    assert {point.test for point in found} == {"matmul", "allreduce"} and len(found) == 16


def test_the_baseline_of_each_test_is_parsed(tmp_path):
    text = (
        '[[sweep]]\ntest = "matmul"\n"M K" = [16, 4]\n[[sweep]]\ntest = "softmax"\nM = [4]\n[[sweep]]\ntest = "mac"\n'
    )
    file = tmp_path / "mine.toml"
    file.write_text('baseline = {"M K" = 4}\n' + text)
    assert sweep_of(file, command_named).baselines == {"matmul": {"M": 4, "K": 4}}
    file.write_text('baseline = "first"\nmeasures = ["busy"]\n' + text)
    found = sweep_of(file, command_named)
    assert found.baselines == {"matmul": {"M": 16, "K": 16}, "softmax": {}, "mac": {}} and found.measures == ("busy",)
