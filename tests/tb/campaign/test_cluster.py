"""Campaigns on workers of dask.distributed, in processes that tests can kill."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import distributed
import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.tb.campaign import cluster
from neuroncore_rtl.tb.campaign.cluster import ClusterExecutor, QueueExecutor, cluster_named
from neuroncore_rtl.tb.campaign.run import campaign
from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.campaign.task import Task, WorkersLost, key_of
from neuroncore_rtl.tb.cli.sweep import simulate
from tests.house.tree import FOLDERS, PACKAGE, ROOT
from tests.tb.campaign import jobs
from tests.tb.campaign.jobs import statuses


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes = []

    def _start(self, program, *arguments, python_path=ROOT):
        path = os.pathsep.join(filter(None, (str(python_path), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--no-dashboard", *arguments]
        environment = os.environ | {"PYTHONPATH": path}
        with (self.folder / f"{program}-{len(self.processes)}").open("w") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)
        return process

    def scheduler(self, workers=0):
        process = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        for _ in range(workers):
            self.worker()
        return process

    def worker(self, *arguments, python_path=ROOT):
        place = ("--local-directory", str(self.folder / f"place-{len(self.processes)}"))
        self._start("dask_worker", self.address, "--nthreads", "1", *place, *arguments, python_path=python_path)

    def end(self):
        for process in reversed(self.processes):
            process.kill()  # on SIGTERM a worker may wait for a dead scheduler
        for process in self.processes:
            process.wait()


@pytest.fixture
def dask(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.end()


def rows_of(folder, tasks, executor):
    with Store(folder / "rows.jsonl") as store:
        yield from campaign(tasks, store, executor, "squares")


def test_a_worker_that_is_killed_in_mid_run_costs_nothing(dask, tmp_path):
    dask.scheduler(workers=2)
    log, started = tmp_path / "log", tmp_path / "started"
    started.mkdir()
    tasks = [jobs.task(jobs.hang_once, 0, str(started)), *jobs.tasks(jobs.log_and_square, 12, str(log), 0.05)]

    def kill():
        while not (found := list(started.iterdir())):
            time.sleep(0.02)
        os.kill(int(found[0].name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    rows = list(rows_of(tmp_path, tasks, ClusterExecutor(dask.address)))
    killer.join()
    assert len(list(started.iterdir())) == 2
    assert statuses(rows) == {"passed": 13} and len({row["key"] for row in rows}) == 13
    assert set(map(int, log.read_text().split())) == set(range(12))
    assert Store(tmp_path / "rows.jsonl").rows() == rows


@pytest.mark.slow
def test_a_scheduler_that_is_restarted_costs_nothing(dask, tmp_path):
    scheduler = dask.scheduler(workers=1)
    tasks = jobs.tasks(jobs.log_and_square, 24, str(tmp_path / "log"), 0.2)
    rows = rows_of(tmp_path, tasks, ClusterExecutor(dask.address))
    found = [next(rows) for _ in range(5)]
    scheduler.kill()
    scheduler.wait()
    dask.scheduler(workers=1)
    found += rows
    assert statuses(found) == {"passed": 24} and len({row["key"] for row in found}) == 24
    assert len(Store(tmp_path / "rows.jsonl").rows()) == 24
    # Only tasks in flight are repeated.
    assert len((tmp_path / "log").read_text().split()) <= 24 + 2


def test_a_scheduler_that_is_lost_before_a_row_is_here_costs_nothing(dask, tmp_path, monkeypatch):
    dask.scheduler(workers=1)
    gather, lost = distributed.Client._gather, []

    async def lose(client, futures, *arguments, **options):
        if not lost:
            lost.append(futures)
            raise OSError("Timed out trying to connect")
        return await gather(client, futures, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "_gather", lose)
    rows = list(rows_of(tmp_path, jobs.tasks(jobs.square, 3), ClusterExecutor(dask.address)))
    assert lost and statuses(rows) == {"passed": 3}


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_named(dask, tmp_path):
    dask.scheduler(workers=1)
    tasks = [jobs.task(jobs.killer, 7), *jobs.tasks(jobs.square, 6)]
    rows = list(rows_of(tmp_path, tasks, ClusterExecutor(dask.address)))
    assert statuses(rows) == {"passed": 6, "broken": 1}
    [failed] = [row for row in rows if row["failure"]]
    assert failed["label"] == "killer7" and failed["failure"].startswith("it has killed 4 workers; the last: tcp://")


@pytest.mark.slow
def test_a_scheduler_that_stays_away_is_an_error_and_rows_are_kept(dask, tmp_path):
    scheduler = dask.scheduler(workers=1)
    executor = ClusterExecutor(dask.address)
    rows = rows_of(tmp_path, jobs.tasks(jobs.square, 50), executor)
    first = next(rows)
    executor.patience = 1
    scheduler.kill()
    scheduler.wait()
    with pytest.raises(WorkersLost, match=f"no scheduler answers at {dask.address}"):
        list(rows)
    assert first in Store(tmp_path / "rows.jsonl").rows()


def test_a_scheduler_may_be_lost_while_it_is_asked():
    def nthreads():
        raise OSError("Timed out trying to connect")

    executor = ClusterExecutor("tcp://127.0.0.1:1")
    executor._client = SimpleNamespace(status="running", nthreads=nthreads)
    executor.check()
    assert executor.workers == 1


@pytest.mark.slow
def test_workers_with_more_than_a_thread_are_refused(dask, tmp_path):
    dask.scheduler()
    dask.worker("--nthreads", "2")
    with pytest.raises(UsageError, match="a worker must have one thread"):
        list(rows_of(tmp_path, jobs.tasks(jobs.square, 2), ClusterExecutor(dask.address)))


def copied_project(folder):
    folder.mkdir()
    for name in (*FOLDERS, PACKAGE):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
def test_a_build_is_sent_to_workers_of_other_folders(dask, tmp_path):
    """The second worker has another project's folder, and receives the build."""
    dask.scheduler()
    places = [copied_project(tmp_path / name) for name in ("one", "two")]
    for place in places:
        dask.worker(python_path=place)
    words = [["PRESET=tiny", "M=4", "K=4", "N=4", f"SEED={seed}"] for seed in range(1, 7)]
    tasks = [Task(f"matmul{n}", key_of(n), simulate, ("matmul", one), "one") for n, one in enumerate(words)]
    rows = list(rows_of(tmp_path / "rows", tasks, ClusterExecutor(dask.address)))
    assert {row["failure"] for row in rows} == {""} and len(rows) == 6
    assert len({row["worker"] for row in rows}) == 2
    built = [list((place / "sim_build" / "verilator").glob("machine-*.lock")) for place in places]
    assert sorted(map(len, built)) == [0, 1]


@pytest.mark.slow
def test_other_sources_are_refused(dask, tmp_path):
    place = copied_project(tmp_path / "other")
    with (place / "spec" / "config.py").open("a") as file:
        file.write("# another state\n")
    dask.scheduler()
    dask.worker(python_path=place)
    [row] = rows_of(tmp_path, [Task("one", key_of(1), simulate, ("matmul", []))], ClusterExecutor(dask.address))
    assert row["status"] == "broken" and "must have the source files of this computer" in row["failure"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # warnings of dask-jobqueue
def test_jobs_of_a_queue(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is optional")
    config = pytest.importorskip("dask.config")
    monkeypatch.setitem(cluster.QUEUES, "local", "dask_jobqueue.local:LocalCluster")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    settings = {"cores": 1, "processes": 1, "memory": "1GB", "local-directory": str(tmp_path)}
    with config.set({f"jobqueue.local.{name}": value for name, value in settings.items()}):
        rows = list(rows_of(tmp_path, jobs.tasks(jobs.square, 6), QueueExecutor(queue="local", jobs=2)))
    assert statuses(rows) == {"passed": 6}


def test_a_queue_without_its_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(MissingTool, match=r"dask-jobqueue is missing .*; install it: .*\[cluster\]"):
        list(rows_of(tmp_path, jobs.tasks(jobs.square, 2), cluster_named("slurm", 2)))


@pytest.mark.parametrize(
    "name, workers, said",
    [
        ("slum", 2, "CLUSTER must be an address such as tcp://host:8786, or one of slurm, .*, not 'slum'"),
        ("slurm", None, "WORKERS must be given with CLUSTER=slurm"),
        ("tcp://here:1", 2, "WORKERS must not be given with CLUSTER=tcp://here:1"),
    ],
)
def test_a_cluster_that_there_is_not(name, workers, said):
    with pytest.raises(UsageError, match=said):
        cluster_named(name, workers)


def test_a_scheduler_that_there_is_not(tmp_path):
    with pytest.raises(WorkersLost, match="no scheduler answers at tcp://127.0.0.1:1"):
        list(rows_of(tmp_path, jobs.tasks(jobs.square, 2), ClusterExecutor("tcp://127.0.0.1:1", patience=0.1)))
