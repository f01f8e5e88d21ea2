"""Campaigns on local processes: every task has exactly one row."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from concurrent.futures import Future

import pytest

from neuroncore_rtl.tb.campaign import executor
from neuroncore_rtl.tb.campaign.executor import LocalExecutor
from neuroncore_rtl.tb.campaign.run import campaign, exit_status
from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.campaign.task import Task, WorkerDied, WorkersLost, key_of, perform
from tests.house.tree import ROOT
from tests.tb.campaign import jobs
from tests.tb.campaign.jobs import statuses


def rows_of(folder, tasks, executor=None):
    with Store(folder / "rows.jsonl") as store:
        return list(campaign(tasks, store, executor or jobs.InProcess(), "squares"))


def test_every_task_has_a_row_and_a_folder_with_what_it_printed_and_runs_once(tmp_path, capsys):
    log = tmp_path / "log"
    tasks = jobs.tasks(jobs.log_and_square, 20, str(log))
    rows = rows_of(tmp_path, [*tasks, tasks[0]], LocalExecutor(2))
    assert sorted(row["square"] for row in rows) == [n * n for n in range(20)]
    assert exit_status(rows) == 0
    assert (tmp_path / "runs" / tasks[0].folder / "log").read_text() == "the square of 0\n"
    assert "squares: 20 tasks, 0 known: 20 passed, 0 failed, 0 broken" in capsys.readouterr().err
    again = rows_of(tmp_path, jobs.tasks(jobs.log_and_square, 22, str(log)))
    assert again[:20] == [next(row for row in rows if row["key"] == task.key) for task in tasks]
    assert sorted(map(int, log.read_text().split())) == list(range(22))
    assert "squares: 22 tasks, 20 known: 22 passed" in capsys.readouterr().err


def test_a_task_that_raises_is_a_row_and_runs_again(tmp_path, capsys):
    tasks = [*jobs.tasks(jobs.refused, 2), *jobs.tasks(jobs.square, 2)]
    rows = rows_of(tmp_path, tasks)
    assert statuses(rows) == {"passed": 2, "broken": 2} and exit_status(rows) == 1
    assert {row["failure"] for row in rows} == {"", "0 is refused", "1 is refused"}
    assert "Traceback" in (tmp_path / "runs" / tasks[0].folder / "log").read_text()
    assert "refused0 broken: 0 is refused" in capsys.readouterr().err
    mended = [Task(task.label, task.key, jobs.square, task.arguments) for task in tasks]
    assert statuses(rows_of(tmp_path, mended)) == {"passed": 4}
    assert len(Store(tmp_path / "rows.jsonl").rows()) == 4


@pytest.mark.parametrize("cell", [[1], float("inf"), b"", object()])
def test_a_row_has_plain_values(tmp_path, cell):
    row = perform(Task("odd", key_of(1), lambda: {"cell": cell}), str(tmp_path))
    assert row["status"] == "broken" and row["key"] == key_of(1)


def test_a_worker_that_is_killed_costs_nothing(tmp_path):
    tasks = [jobs.task(jobs.fragile, 1, str(tmp_path / "mark")), *jobs.tasks(jobs.square, 10)]
    rows = rows_of(tmp_path, tasks, LocalExecutor(2))
    assert statuses(rows) == {"passed": 11} and len({row["key"] for row in rows}) == 11


def test_a_task_that_kills_its_workers_is_named_and_others_are_not(tmp_path):
    rows = rows_of(tmp_path, [jobs.task(jobs.killer, 7), *jobs.tasks(jobs.square, 20)], LocalExecutor(2))
    assert statuses(rows) == {"passed": 20, "broken": 1}
    [failed] = [row for row in rows if row["failure"]]
    assert failed["label"] == "killer7" and failed["raised"] == "WorkerDied"
    assert failed["failure"] == "it has killed 3 workers; the last: its worker ended with status -9"


class Suspicious(jobs.InProcess):
    """Executor with one worker for all tasks; if a task kills it, all submitted tasks are blamed, as in dask."""

    def __init__(self):
        self.given, self.handed_out = {}, Counter()

    def __exit__(self, *problem):
        assert not self.given

    def submit(self, task, runs):
        self.handed_out[task.label] += 1
        self.given[future := Future()] = task, runs
        return future

    def check(self):
        died = any(task.function is jobs.killer for task, _ in self.given.values())
        for future, (task, runs) in self.given.items():
            if died:
                future.set_exception(WorkerDied("the only one", 4, alone=False))
            else:
                future.set_result(perform(task, runs))
        self.given.clear()


def test_a_task_is_not_blamed_for_another_on_its_worker(tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "CHECKED", 0.01)
    tasks = jobs.tasks(jobs.square, 7, group="one")
    tasks[2:2] = [jobs.task(jobs.killer, 1, group="two"), jobs.task(jobs.square, 9, group="two")]
    with Store(tmp_path / "rows.jsonl") as store:
        rows = list(campaign(tasks, store, blaming := Suspicious(), "squares"))
    assert statuses(rows) == {"passed": 8, "broken": 1}
    [failed] = [row for row in rows if row["failure"]]
    assert (failed["label"], failed["failure"]) == ("killer1", "it has killed 4 workers; the last: the only one")
    assert blaming.handed_out["killer1"] == 2 and blaming.handed_out.total() > len(tasks) + 1


def test_what_cannot_be_built_is_tried_once(tmp_path):
    """Tasks that wait for the first one of their group, and tasks drawn later, both fail without a build."""
    log, unbuildable = tmp_path / "log", jobs.tasks(jobs.unbuildable, 9, str(tmp_path / "log"), group="one")
    rows = rows_of(tmp_path, [*unbuildable[:4], *jobs.tasks(jobs.square, 3), *unbuildable[4:]])
    assert statuses(rows) == {"passed": 3, "broken": 9}
    assert len({row["key"] for row in rows}) == 12
    assert log.read_text() == "0\n"
    assert {row["failure"].partition(" (")[0] for row in rows} == {"", "verilator cannot build wrong"}


def test_the_first_of_a_group_ends_before_the_others_begin(tmp_path):
    log = tmp_path / "log"
    rows = rows_of(tmp_path, jobs.tasks(jobs.log_and_square, 4, str(log), 0.3, group="one"), LocalExecutor(2))
    assert log.read_text().split()[0] == "0" and rows[0]["number"] == 0 and len(rows) == 4


def test_tasks_without_an_end_are_run_until_the_time_is_over(tmp_path, capsys):
    first, ahead = [], []

    def endless():
        for number in itertools.count():
            ahead.append(number - len(first))
            yield jobs.task(jobs.log_and_square, number, str(tmp_path / "log"), 0.02, group=f"group {number // 4}")

    with Store(tmp_path / "rows.jsonl") as store:
        for row in campaign(endless(), store, jobs.InProcess(), "squares", seconds=0.5):
            first.append(row)
        numbers = [row["number"] for row in first]
        assert len(numbers) == len(set(numbers)) > 4 and statuses(first) == {"passed": len(first)}
        places = {number: place for place, number in enumerate(numbers)}
        assert all(places[4 * (number // 4)] <= place for number, place in places.items())
        # Tasks are drawn only as workers become free, plus those of groups without a build.
        assert max(ahead) < 16
        assert f"squares: {len(first):,} tasks, 0 known: {len(first):,} passed" in capsys.readouterr().err
        again = list(campaign(endless(), store, jobs.InProcess(), "squares", seconds=0.2))
    assert again and not {row["number"] for row in again} & set(numbers)


def test_a_full_disk_ends_the_campaign_and_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    kept, tasks = [], jobs.tasks(jobs.square, 8)

    def add(store, row, whole=Store.add):
        if len(kept) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(store.path))
        whole(store, row)
        kept.append(row)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(Store, "add", add)
        rows_of(tmp_path, tasks)
    assert "8 tasks, 0 known: 3 passed, 0 failed, 0 broken; 5 remain, repeat the command" in capsys.readouterr().err
    assert Store(tmp_path / "rows.jsonl").rows() == kept
    assert rows_of(tmp_path, tasks)[:3] == sorted(kept, key=lambda row: row["number"])
    assert "8 tasks, 3 known: 8 passed" in capsys.readouterr().err


@pytest.mark.slow
def test_workers_that_cannot_start_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("neuroncore_rtl.tb.campaign.executor._follow_parent", jobs.killer)
    with pytest.raises(WorkersLost, match="all workers ended before one of them had finished a task"):
        rows_of(tmp_path, jobs.tasks(jobs.square, 3), LocalExecutor(2))


SCRIPT = """
    import signal
    import sys
    from pathlib import Path
    from neuroncore_rtl.tb.campaign.executor import LocalExecutor
    from neuroncore_rtl.tb.campaign.run import campaign
    from neuroncore_rtl.tb.campaign.store import Store
    from tests.tb.campaign import jobs

    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        folder = Path(sys.argv[1])
        tasks = [*jobs.tasks(jobs.square, 5), *jobs.tasks(jobs.waiting, 4, str(folder))]
        with Store(folder / "rows.jsonl") as store:
            list(campaign(tasks, store, LocalExecutor(2), "waiting"))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_campaign_that_is_ended_keeps_its_rows_and_leaves_no_process(tmp_path, number):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    folders = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, str(script), str(tmp_path)]
    run = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": folders}, stderr=subprocess.PIPE, text=True)
    while len(started := list(tmp_path.glob("[0-9]-*"))) < 2 and run.poll() is None:
        time.sleep(0.05)
    run.send_signal(number)
    _, said = run.communicate(timeout=120)
    assert run.returncode != 0
    if number == signal.SIGINT:
        assert "9 tasks" not in said  # the numbers of rows
    workers = [int(path.name.partition("-")[2]) for path in started]
    assert len(workers) == 2
    while any(map(_lives, workers)):
        time.sleep(0.05)
    assert statuses(Store(tmp_path / "rows.jsonl").rows()) == {"passed": 5}
    assert statuses(rows_of(tmp_path, jobs.tasks(jobs.square, 6))) == {"passed": 6}


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
