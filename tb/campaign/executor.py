"""Executors, which run the tasks of a campaign: processes of this computer, or workers of a cluster.

The task of a worker that died runs again; a task that has killed `DEATHS` workers is broken. If other tasks could have
killed them, it first runs alone, after all others, before it is blamed. If all workers are lost at the same time (a
pool or a scheduler failed), they are started again, and no task is blamed.
"""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Self

import pebble

from neuroncore_rtl.tb.campaign.task import Row, Task, WorkerDied, WorkersLost, broken_row, perform

__all__ = ["DEATHS", "Executor", "LocalExecutor", "run_tasks"]

DEATHS = 3
"""Number of workers that end abnormally while they run a task before the task counts as broken."""

AHEAD = 2  # tasks submitted per worker, so that none idles until the next one arrives
CHECKED = 10  # seconds without a row after which `Executor.check` runs


class Executor:
    """Workers that perform tasks; a context manager that ends all running tasks on exit."""

    workers: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None: ...

    def submit(self, task: Task, runs: str) -> Future:
        """Return the future row of a task, from `tb.campaign.task.perform`."""
        raise NotImplementedError

    def problem(self, error: BaseException) -> BaseException:
        """Classify the exception of a future: `WorkerDied`, `WorkersLost`, or the task's own exception."""
        return error

    def renew(self) -> None:
        """Start or find workers again after they were lost; raise WorkersLost if none are available."""

    def check(self) -> None:
        """Raise WorkersLost if no worker can return a row any more; called repeatedly while no row arrives."""

    def share(self, row: Row) -> None:
        """Send the build that a run created to all workers, before the other tasks of its group are submitted."""


@dataclass
class LocalExecutor(Executor):
    """Executor with worker processes on this computer, which share a folder; their pool detects dead ones."""

    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))

    def __enter__(self) -> "LocalExecutor":
        self.renew()
        return self

    def __exit__(self, *problem: object) -> None:
        self._pool.stop()
        self._pool.join()

    def renew(self) -> None:
        # Spawned, not forked, as this process has threads.
        context = multiprocessing.get_context("spawn")
        self._pool = pebble.ProcessPool(self.workers, initializer=_follow_parent, context=context)

    def submit(self, task: Task, runs: str) -> Future:
        # The first call starts processes, which inherit that Ctrl-C does not reach them: this process ends them.
        resource_tracker.ensure_running()  # its start would unblock the signal
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            return self._pool.schedule(perform, args=(task, runs))
        except RuntimeError as error:
            raise WorkersLost(str(error)) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def problem(self, error: BaseException) -> BaseException:
        if isinstance(error, pebble.ProcessExpired):
            return WorkerDied(f"its worker ended with status {error.exitcode}")
        return WorkersLost(str(error)) if isinstance(error, BrokenProcessPool | CancelledError) else error


def _follow_parent() -> None:
    """End this worker process, and the programs that it runs, by SIGTERM or when the campaign's process ends."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os.killpg(0, signal.SIGKILL)), daemon=True).start()


def run_tasks(
    tasks: Iterable[Task], executor: Executor, runs: str, over: Callable[[], bool]
) -> Iterator[tuple[Task, Row]]:
    """Yield each task once with its row, in the order in which they end.

    Arguments:
        tasks: tasks with distinct keys, consumed when a worker can run one; may be infinite if `over` ends it.
        executor: the executor; its context manager must have been entered.
        runs: folder, see `tb.campaign.task.perform`.
        over: returns True when no more tasks are to be submitted.

    Raises:
        WorkersLost: workers are not available, or were lost `DEATHS` times without a finished task.
    """
    queue = _Queue(tasks)
    running: dict[Future, Task] = {}
    deaths, losses, lost = Counter(), 0, False
    suspects: deque[Task] = deque()
    by_itself: Task | None = None
    refused: dict[str, Row] = {}

    def submit(task: Task) -> bool:
        nonlocal lost
        try:
            running[executor.submit(task, runs)] = task
        except WorkersLost:
            lost = True
        return not lost

    while running or suspects or (not over() and queue.first() is not None):
        if lost and not running:
            losses += 1
            if losses > DEATHS:
                raise WorkersLost(f"{losses} times all workers ended before one of them had finished a task")
            executor.renew()
            lost = False
        while not lost and len(running) < AHEAD * executor.workers and not over():
            if (task := queue.first()) is None:
                break
            if task.group in refused:
                # A build that failed is not tried again for the other tasks of its group.
                queue.ready.popleft()
                yield task, {**refused[task.group], "key": task.key, "label": task.label}
                continue
            if submit(task):
                queue.ready.popleft()
        if suspects and not running and not lost:
            by_itself = suspects[0]
            if submit(by_itself):
                suspects.popleft()
        done = wait(running, timeout=CHECKED, return_when=FIRST_COMPLETED).done
        if not done:
            executor.check()
        for future in done:
            task, problem = running.pop(future), _problem(future, executor)
            if isinstance(problem, WorkersLost):
                lost = True
                queue.ready.appendleft(task)
                continue
            if isinstance(problem, WorkerDied):
                deaths[task.key] += problem.workers
                if deaths[task.key] < DEATHS:
                    queue.ready.appendleft(task)
                    continue
                if not problem.alone and task is not by_itself:
                    deaths[task.key] = 0
                    suspects.append(task)
                    continue
                problem = WorkerDied(f"it has killed {deaths[task.key]} workers; the last: {problem}")
            row = future.result() if problem is None else broken_row(task, problem)
            losses = 0
            yield task, row
            others = queue.release(task.group)
            if others:
                executor.share(row)
            if task.group and row.get("raised") == "BuildFailed":
                refused[task.group] = row
            queue.ready.extend(others)


class _Queue:
    """Pending tasks in order; the first task of a group runs before the others, which are held until it has ended."""

    def __init__(self, tasks: Iterable[Task]):
        self._tasks = iter(tasks)
        self.ready: deque[Task] = deque()
        self._held: dict[str, list[Task]] = {}
        self._built: set[str] = set()

    def first(self) -> Task | None:
        while not self.ready:
            task = next(self._tasks, None)
            if task is None:
                return None
            if task.group in self._held:
                self._held[task.group].append(task)
                continue
            if task.group and task.group not in self._built:
                self._held[task.group] = []
            self.ready.append(task)
        return self.ready[0]

    def release(self, group: str) -> list[Task]:
        """Return the held tasks of a group; tasks of this group are not held any more."""
        self._built.add(group)
        return self._held.pop(group, [])


def _problem(future: Future, executor: Executor) -> BaseException | None:
    if future.cancelled():
        return WorkersLost("cancelled")
    error = future.exception()
    return None if error is None else executor.problem(error)
