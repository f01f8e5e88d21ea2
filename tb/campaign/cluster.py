"""Workers of a cluster, by dask.distributed: those of a scheduler that runs, or jobs of a queue.

The scheduler gives the task of a worker that died to another. If the scheduler is lost, it is looked for until
`PATIENCE` has passed, and what was under way is handed out again. Workers need the project at the same state; a folder
that all share they need not have: what the first run of a group has built is sent to those that lack it.
"""

import logging
import multiprocessing
import pkgutil
import time
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field

import distributed
from distributed.comm import CommClosedError
from distributed.diagnostics.plugin import WorkerPlugin

from neuroncore_rtl.run.report import terminal
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim import parcels
from neuroncore_rtl.run.sim.doctor import MissingTool
from neuroncore_rtl.tb.campaign.executor import Executor
from neuroncore_rtl.tb.campaign.task import BUILDS, Row, Task, WorkerDied, WorkersLost, perform, sources

__all__ = ["ClusterExecutor", "QueueExecutor", "cluster_named"]

PATIENCE = 120
"""Seconds in which a scheduler must answer, and have a worker."""

QUEUES = {
    name: f"dask_jobqueue:{kind}Cluster"
    for name, kind in (
        ("slurm", "SLURM"), ("pbs", "PBS"), ("lsf", "LSF"), ("sge", "SGE"), ("oar", "OAR"), ("moab", "Moab"),
        ("htcondor", "HTCondor"),
    )
}  # fmt: skip
"""Queues of jobs, and what starts workers as their jobs; it reads its settings from ~/.config/dask/jobqueue.yaml."""


@dataclass
class ClusterExecutor:
    """Workers of a scheduler.

    Arguments:
        address: of the scheduler.
        patience: seconds, see `PATIENCE`.
    """

    address: str
    patience: float = PATIENCE
    _parcels: dict[str, "_Parcel"] = field(default_factory=dict)
    _alone: float | None = None
    """Since when there is no worker."""

    def __enter__(self) -> "ClusterExecutor":
        # It tells at length of every connection that breaks; what matters of it is said here.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._connect()
        return self

    def __exit__(self, *problem: object) -> None:
        self._client.close()  # what its scheduler has not begun is forgotten there

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
        self._pool = self._client.get_executor(pure=False)
        for parcel in self._parcels.values():
            self._client.register_plugin(parcel, parcel.name)

    def _examine(self, deadline: float) -> None:
        """Wait for a worker, and refuse workers that are no processes of their own."""
        try:
            self._client.wait_for_workers(1, timeout=max(1, deadline - time.monotonic()))
        except TimeoutError as error:
            raise WorkersLost(f"the scheduler at {self.address} has no worker") from error
        shared = {address: count for address, count in self._client.nthreads().items() if count != 1}
        if shared:
            one, count = next(iter(shared.items()))
            raise UsageError(f"a worker must have one thread (dask worker --nthreads 1), not {count} as {one}")

    def renew(self) -> None:
        terminal(stderr=True).print(f"the scheduler at {self.address} is lost; looking for it", markup=False)
        self._client.close()
        self._connect()

    @property
    def workers(self) -> int:
        return max(1, len(self._threads() or ()))

    def _threads(self) -> dict[str, int] | None:
        """Return the workers' threads; None if the scheduler is lost, which it may be any moment."""
        try:
            return self._client.nthreads() if self._client.status == "running" else None
        except (OSError, TimeoutError, CancelledError):
            return None

    def submit(self, task: Task, runs: str) -> Future:
        if self._client.status != "running":
            raise WorkersLost(f"the scheduler at {self.address} is lost")
        return self._pool.submit(_perform_there, task, runs, sources())

    def problem(self, error: BaseException) -> BaseException:
        if isinstance(error, distributed.scheduler.KilledWorker):
            # dask blames all that it had handed to the worker, begun or not.
            return WorkerDied(error.last_worker.address, error.allowed_failures + 1, alone=False)
        lost = CancelledError | distributed.client.FutureCancelledError | CommClosedError
        return WorkersLost(str(error)) if isinstance(error, lost) else error

    def check(self) -> None:
        """Raise WorkersLost if there has been no worker for too long."""
        threads = self._threads()
        if threads is None or threads:
            self._alone = None
        elif self._alone is None:
            self._alone = time.monotonic()
        elif time.monotonic() - self._alone > self.patience:
            raise WorkersLost(f"the scheduler at {self.address} has had no worker for {self.patience:g} s")

    def share(self, row: Row) -> None:
        """Send what a run has built to all workers, those that come later too, if there is one that lacks it."""
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
            return  # who made it is gone: the others build for themselves


class _Parcel(WorkerPlugin):
    """What is put on every worker, when it comes."""

    def __init__(self, name: str, content: bytes, names: list[str]):
        self.name, self.content, self.names = name, content, names

    def setup(self, worker) -> None:
        if parcels.missing(self.names):
            parcels.unpack_parcel(self.content, self.names)


def _perform_there(task: Task, runs: str, expected: str) -> Row:
    """As :func:`tb.campaign.task.perform`, on a worker; it has its address in the row.

    Raises:
        RuntimeError: if its sources are others, as its row would be one of another key.
    """
    address = distributed.get_worker().address
    if sources() != expected:
        raise RuntimeError(f"the worker {address} must have the sources that are here, but has others")
    # dask starts workers as daemons, which multiprocessing lets have no children; elaboration has some, and waits for
    # them. The nanny, whose child the worker is, still knows it as a daemon.
    multiprocessing.current_process()._config["daemon"] = False
    return perform(task, runs) | {"worker": address}


@dataclass
class QueueExecutor(ClusterExecutor):
    """Workers that are jobs of a queue, started and ended with the campaign.

    Arguments:
        queue: one of `QUEUES`. jobs: how many. patience: none, as jobs wait for their turn.
    """

    address: str = ""
    patience: float = 7 * 24 * 3600
    queue: str = ""
    jobs: int = 1

    def __enter__(self) -> "QueueExecutor":
        try:
            start = pkgutil.resolve_name(QUEUES[self.queue])
        except ImportError:
            package = "dask-jobqueue is missing (jobs of a queue); install it"
            raise MissingTool(f"{package}: .venv/bin/uv pip install -e '.[cluster]'") from None
        self._jobs = start(scheduler_options={"dashboard": False})
        self._jobs.scale(jobs=self.jobs)
        self.address = self._jobs.scheduler_address
        return super().__enter__()

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        self._jobs.close()


def cluster_named(name: str, jobs: int | None) -> Executor:
    """Return the workers that CLUSTER and WORKERS name.

    Raises:
        UsageError: if there are none such.
    """
    if name in QUEUES:
        if jobs is None:
            raise UsageError(f"WORKERS must be given with CLUSTER={name}: the number of jobs")
        return QueueExecutor(queue=name, jobs=jobs)
    if "://" not in name:
        raise UsageError(
            f"CLUSTER must be an address such as tcp://host:8786, or one of {', '.join(QUEUES)}, not {name!r}"
        )
    if jobs is not None:
        raise UsageError(f"WORKERS must be given to the scheduler's workers, not with CLUSTER={name}")
    return ClusterExecutor(name)
