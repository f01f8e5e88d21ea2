"""Cluster executors (dask.distributed): an existing scheduler, or workers started as jobs of a batch queue.

If the connection to the scheduler is lost, the executor reconnects for up to `PATIENCE` seconds, and pending tasks are
submitted again.
Workers need the same sources, but no shared folder: the first run of a group sends its build to the workers that lack
it.
"""

import logging
import multiprocessing
import pkgutil
import time
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field

import distributed
from distributed.diagnostics.plugin import WorkerPlugin

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.shell import terminal
from neuroncore_rtl.run.sim import parcels
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.tb.campaign.executor import Executor
from neuroncore_rtl.tb.campaign.task import BUILDS, Row, Task, WorkerDied, WorkersLost, perform, sources

__all__ = ["ClusterExecutor", "QueueExecutor", "cluster_named"]

PATIENCE = 120  # seconds that a scheduler has to answer and to provide a worker

QUEUES = {
    kind.lower(): f"dask_jobqueue:{kind}Cluster" for kind in ("SLURM", "PBS", "LSF", "SGE", "OAR", "Moab", "HTCondor")
}
"""Batch queues and the class that starts workers as their jobs, configured in ~/.config/dask/jobqueue.yaml."""


@dataclass
class ClusterExecutor(Executor):
    """Executor with the workers of an existing scheduler; `patience` is how many seconds it waits for workers."""

    address: str
    patience: float = PATIENCE
    _parcels: dict[str, "_Parcel"] = field(default_factory=dict)
    _alone: float | None = None
    """Time since which there has been no worker; None while there is a worker."""

    def __enter__(self) -> "ClusterExecutor":
        # distributed logs each broken connection at length; this module reports the important ones.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._connect()
        return self

    def __exit__(self, *problem: object) -> None:
        self._client.close()  # the scheduler then drops the tasks that have not started

    def _connect(self) -> None:
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._client = distributed.Client(self.address, timeout=max(1, deadline - time.monotonic()))
                break
            except (OSError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise WorkersLost(f"no scheduler answers at {self.address}") from error
            time.sleep(0.2)
        try:
            self._examine(deadline)
        except (WorkersLost, UsageError):
            self._client.close()
            raise
        for parcel in self._parcels.values():
            self._client.register_plugin(parcel, parcel.name)

    def _examine(self, deadline: float) -> None:
        try:
            self._client.wait_for_workers(1, timeout=max(1, deadline - time.monotonic()))
        except TimeoutError as error:
            raise WorkersLost(f"the scheduler at {self.address} has no worker") from error
        shared = {address: count for address, count in self._client.nthreads().items() if count != 1}
        if shared:
            one, count = next(iter(shared.items()))
            raise UsageError(
                f"a worker must have one thread (dask worker --nthreads 1); the worker at {one} has {count}"
            )

    def renew(self) -> None:
        terminal(stderr=True).print(f"lost the scheduler at {self.address}; reconnecting", markup=False)
        self._client.close()
        self._connect()

    @property
    def workers(self) -> int:
        return max(1, len(self._threads() or ()))

    def _threads(self) -> dict[str, int] | None:
        try:
            return self._client.nthreads() if self._client.status == "running" else None
        except (OSError, TimeoutError, CancelledError):
            return None

    def submit(self, task: Task, runs: str) -> Future:
        if self._client.status != "running":
            raise WorkersLost(f"the scheduler at {self.address} is lost")
        future, row = self._client.submit(_perform_there, task, runs, sources(), pure=False), Future()
        self._client.loop.add_callback(_hand_on, future, row)
        return row

    def problem(self, error: BaseException) -> BaseException:
        if isinstance(error, distributed.scheduler.KilledWorker):
            # dask blames every task that was assigned to the worker, started or not.
            return WorkerDied(error.last_worker.address, error.allowed_failures + 1, alone=False)
        return error

    def check(self) -> None:
        threads = self._threads()
        if threads is None or threads:
            self._alone = None
        elif self._alone is None:
            self._alone = time.monotonic()
        elif time.monotonic() - self._alone > self.patience:
            raise WorkersLost(f"the scheduler at {self.address} has had no worker for {self.patience:g} s")

    def share(self, row: Row) -> None:
        """Send what a run has built to all present and future workers if one of them lacks it."""
        names = str(row.get(BUILDS, "")).split()
        name = f"builds-{hash(tuple(names))}"
        if not names or name in self._parcels:
            return
        try:
            lacking = [address for address, found in self._client.run(parcels.missing, names).items() if found]
            if lacking and row["worker"] not in lacking:
                content = self._client.run(parcels.pack_parcel, names, workers=[row["worker"]])[row["worker"]]
                self._parcels[name] = _Parcel(name, content, names)
                self._client.register_plugin(self._parcels[name], name)
        except (OSError, TimeoutError, ValueError, CancelledError):
            return  # the worker with the build has ended: each other worker makes its own build


@dataclass
class _Parcel(WorkerPlugin):
    """Archive of build files that each worker unpacks when it joins."""

    name: str
    content: bytes
    names: list[str]

    def setup(self, worker) -> None:
        if parcels.missing(self.names):
            parcels.unpack_parcel(self.content, self.names)


async def _hand_on(future: distributed.Future, row: Future) -> None:
    """Give the outcome of dask's future to `row`.

    dask's own executor leaves the row pending for ever if the scheduler is lost after the task has ended and before its
    result is here.
    """
    try:
        row.set_result(await future)
    except BaseException as error:
        row.set_exception(error if future.status == "error" else WorkersLost(str(error)))


def _perform_there(task: Task, runs: str, expected: str) -> Row:
    """Run a task on a worker; raise RuntimeError if the worker's source files, part of the row's key, differ."""
    address = distributed.get_worker().address
    if sources() != expected:
        raise RuntimeError(f"the worker {address} must have the source files of this computer, but its files differ")
    # dask starts workers as daemons, and multiprocessing forbids children of a daemon. Elaboration starts children and
    # waits for them. The worker's parent process, the nanny, still treats the worker as a daemon.
    multiprocessing.current_process()._config["daemon"] = False
    return perform(task, runs) | {"worker": address}


@dataclass
class QueueExecutor(ClusterExecutor):
    """Executor with workers that are jobs of the batch queue `queue`; it waits long, as jobs wait in the queue."""

    address: str = ""
    patience: float = 7 * 24 * 3600
    queue: str = ""
    jobs: int = 1

    def __enter__(self) -> "QueueExecutor":
        try:
            start = pkgutil.resolve_name(QUEUES[self.queue])
        except ImportError:
            message = "dask-jobqueue is missing (jobs of a batch queue)"
            raise MissingTool(f"{message}; install it: .venv/bin/uv pip install -e '.[cluster]'") from None
        self._jobs = start(scheduler_options={"dashboard": False})
        self._jobs.scale(jobs=self.jobs)
        self.address = self._jobs.scheduler_address
        return super().__enter__()

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        self._jobs.close()


def cluster_named(name: str, jobs: int | None) -> Executor:
    """Return the executor that CLUSTER and WORKERS select; raise UsageError if they are wrong."""
    if name in QUEUES:
        if jobs is None:
            raise UsageError(f"WORKERS must be given with CLUSTER={name}: the number of jobs")
        return QueueExecutor(queue=name, jobs=jobs)
    if "://" not in name:
        raise UsageError(
            f"CLUSTER must be an address such as tcp://host:8786, or one of {', '.join(QUEUES)}, not {name!r}"
        )
    if jobs is not None:
        raise UsageError(f"WORKERS must not be given with CLUSTER={name}: a scheduler's workers are started with it")
    return ClusterExecutor(name)
