"""Workers: processes of this machine, or those of a cluster, behind one interface.

`finished` hands tasks out and yields their rows as they come. A worker that dies costs what it was doing, which is
done again; a task that has killed `DEATHS` workers is broken. Where others could have killed them, it is tried by
itself, behind all others, before it is blamed. Workers that are all lost at once, with a pool or a scheduler, are asked
for anew, and nobody is blamed.
"""

import multiprocessing
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Protocol

import pebble

from neuroncore_rtl.run.sim.simulation import BuildFailed
from neuroncore_rtl.tb.campaign.task import Row, Task, WorkerDied, WorkersLost, broken, perform

__all__ = ["DEATHS", "Executor", "LocalExecutor", "finished"]

DEATHS = 3
"""Workers that a task may kill before it is broken: others can have brought down the first."""

AHEAD = 2
"""Tasks handed out for each worker, so that none waits for the next one."""


CHECKED = 10
"""Seconds without a row after which the workers are looked at."""


class Executor(Protocol):
    """Workers that perform tasks; entered before use, and on leaving all that still runs is ended.

    Attributes:
        workers: how many there are, at least 1.
    """

    workers: int

    def __enter__(self) -> "Executor": ...

    def __exit__(self, *problem: object) -> None: ...

    def submit(self, task: Task, runs: str) -> Future:
        """Return the future row of a task, as :func:`tb.campaign.task.perform` makes it."""

    def problem(self, error: BaseException) -> BaseException:
        """Return what an exception of a future says: `WorkerDied`, `WorkersLost`, or it is the task's own."""

    def renew(self) -> None:
        """Get workers again when they were lost.

        Raises:
            WorkersLost: if there are none to be had; the message says where they were looked for.
        """

    def check(self) -> None:
        """Called now and then while nothing comes.

        Raises:
            WorkersLost: if nothing can come any more.
        """

    def share(self, row: Row) -> None:
        """Let all workers have what a run has built; called before the others of its group are handed out."""


@dataclass
class LocalExecutor:
    """Processes of this machine.

    Arguments:
        workers: how many; as many as there are cores unless told.
    """

    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))

    def __enter__(self) -> "LocalExecutor":
        self.renew()
        return self

    def __exit__(self, *problem: object) -> None:
        self._pool.stop()
        self._pool.join()

    def renew(self) -> None:
        # Started anew rather than forked, as this process has threads.
        context = multiprocessing.get_context("spawn")
        self._pool = pebble.ProcessPool(self.workers, initializer=_follow_parent, context=context)

    def submit(self, task: Task, runs: str) -> Future:
        try:
            return self._pool.schedule(perform, args=(task, runs))
        except RuntimeError as error:
            raise WorkersLost(str(error)) from error

    def problem(self, error: BaseException) -> BaseException:
        if isinstance(error, pebble.ProcessExpired):
            return WorkerDied(f"its worker ended with status {error.exitcode}")
        return WorkersLost(str(error)) if isinstance(error, BrokenProcessPool | CancelledError) else error

    def check(self) -> None:
        """The pool notices by itself."""

    def share(self, row: Row) -> None:
        """They are in one folder."""


def _follow_parent() -> None:
    """Let this worker end when the campaign does, even if that is killed and can end nobody."""
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def finished(
    tasks: Iterable[Task], executor: Executor, runs: str, over: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Task, Row]]:
    """Yield each task with its row, in the order in which they end; each is yielded once.

    Arguments:
        tasks: of different keys; without an end, if `over` says that there is one. They are asked for when a worker
            could take them.
        executor: entered.
        runs: see :func:`tb.campaign.task.perform`.
        over: whether nothing more is to be handed out; what is under way comes to its end.

    Raises:
        WorkersLost: if workers are gone and there are no others to be had, or if those go as well before any has done
            anything.
    """
    queue = _Queue(tasks)
    running: dict[Future, Task] = {}
    deaths, losses, lost = Counter(), 0, False
    suspects: deque[Task] = deque()
    by_itself: Task | None = None
    refused: dict[str, Row] = {}
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
                # What cannot be built is not tried again for each of those that need it.
                queue.take()
                yield task, {**refused[task.group], "key": task.key, "label": task.label}
                continue
            try:
                running[executor.submit(task, runs)] = task
                queue.take()
            except WorkersLost:
                lost = True
        if suspects and not running and not lost:
            by_itself = suspects[0]
            try:
                running[executor.submit(by_itself, runs)] = by_itself
                suspects.popleft()
            except WorkersLost:
                lost = True
        done = wait(running, timeout=CHECKED, return_when=FIRST_COMPLETED).done
        if not done:
            executor.check()
        for future in done:
            task, problem = running.pop(future), _problem(future, executor)
            if isinstance(problem, WorkersLost):
                lost = True
                queue.put_back(task)
                continue
            if isinstance(problem, WorkerDied):
                deaths[task.key] += problem.workers
                if deaths[task.key] < DEATHS:
                    queue.put_back(task)
                    continue
                if not problem.alone and task is not by_itself:
                    deaths[task.key] = 0
                    suspects.append(task)
                    continue
                problem = WorkerDied(f"{deaths[task.key]} workers have died of it; the last: {problem}")
            row = future.result() if problem is None else broken(task, problem)
            losses = 0
            yield task, row
            others = queue.release(task.group)
            if others:
                executor.share(row)
            if task.group and row.get("raised") == BuildFailed.__name__:
                refused[task.group] = row
            queue.append(others)


class _Queue:
    """Tasks in their order, of each group the first before any other: those wait until it has ended.

    Arguments:
        tasks: all of them, asked for one by one.
    """

    def __init__(self, tasks: Iterable[Task]):
        self._tasks = iter(tasks)
        self._ready: deque[Task] = deque()
        self._held: dict[str, list[Task]] = {}
        self._built: set[str] = set()

    def first(self) -> Task | None:
        """Return the task that is to be handed out next; None if there is none now."""
        while not self._ready:
            task = next(self._tasks, None)
            if task is None:
                return None
            if task.group in self._held:
                self._held[task.group].append(task)
                continue
            if task.group and task.group not in self._built:
                self._held[task.group] = []
            self._ready.append(task)
        return self._ready[0]

    def take(self) -> None:
        """Hand the first one out."""
        self._ready.popleft()

    def put_back(self, task: Task) -> None:
        """Hand a task out again, before all others."""
        self._ready.appendleft(task)

    def append(self, tasks: Iterable[Task]) -> None:
        """Have tasks handed out that need not wait any more."""
        self._ready.extend(tasks)

    def release(self, group: str) -> list[Task]:
        """Return those that have waited for the first of a group; those that come have nothing to wait for."""
        self._built.add(group)
        return self._held.pop(group, [])


def _problem(future: Future, executor: Executor) -> BaseException | None:
    """Return what is wrong with a future that has ended."""
    if future.cancelled():
        return WorkersLost("cancelled")
    error = future.exception()
    return None if error is None else executor.problem(error)
