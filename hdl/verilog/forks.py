"""Parallel calls in forked processes: they inherit the state of this process and send their results back."""

import gc
import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

__all__ = ["Forks"]

_context = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class _Call:
    name: str
    function: Callable
    arguments: tuple
    joined: bool


class Forks:
    """Pool of forked processes, as many at a time as there are processors; a context manager.

    Iteration yields, in order of completion, each call's name and a function that returns its result or raises its
    exception. It ends when all calls have finished; more may be submitted meanwhile.
    """

    def __init__(self):
        self._waiting: deque[_Call] = deque()
        self._running: dict[Connection, tuple[list[_Call], multiprocessing.Process]] = {}

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, *exception) -> None:
        for _, process in self._running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the programs that it runs
            process.join()

    def submit(self, name: str, function: Callable, *arguments, first: bool = False, joined: bool = False) -> None:
        """Queue a call, which starts as soon as a processor is free.

        Arguments:
            name: identifies the result of the call.
            function: the function to call.
            arguments: arguments of the function.
            first: put the call before all pending calls.
            joined: calls of this function may be batched. The function then gets a list of argument tuples and returns
                a list of results; a free process receives the pending calls divided by twice the number of processors.
        """
        (self._waiting.appendleft if first else self._waiting.append)(_Call(name, function, arguments, joined))
        self._start()

    def __iter__(self) -> Iterator[tuple[str, Callable[[], object]]]:
        while self._running:
            for receiver in wait(list(self._running)):
                calls, process = self._running.pop(receiver)
                try:
                    results, error = receiver.recv()
                except EOFError:
                    process.join()
                    names = ", ".join(call.name for call in calls)
                    results, error = None, RuntimeError(f"{names}: its process ended with status {process.exitcode}")
                process.join()
                self._start()
                for call, result in zip(calls, results or [None] * len(calls), strict=True):
                    yield call.name, lambda result=result, error=error: _result(result, error)

    def _start(self) -> None:
        processors = len(os.sched_getaffinity(0))
        while self._waiting and len(self._running) < processors:
            calls = [self._waiting.popleft()]
            # Half of an equal share: a large last batch would still run when the other processors are idle.
            share = len(self._waiting) // (2 * processors)
            while len(calls) <= share and _may_join(calls[0], self._waiting[0]):
                calls.append(self._waiting.popleft())
            receiver, sender = _context.Pipe(duplex=False)
            process = _context.Process(target=_answer, args=(sender, calls), daemon=True)
            with warnings.catch_warnings():
                # Threads of the caller, such as JAX's, do not exist in the child, which uses nothing of theirs.
                warnings.filterwarnings("ignore", message=".*fork", category=RuntimeWarning)
                warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
                process.start()
            with suppress(ProcessLookupError):
                os.setpgid(process.pid, process.pid)  # a terminal interrupts only this process, which ends the others
            sender.close()
            self._running[receiver] = calls, process


def _may_join(one: _Call, other: _Call) -> bool:
    return one.joined and other.joined and one.function == other.function


def _answer(sender: Connection, calls: list[_Call]) -> None:
    os.setpgid(0, 0)
    threading.Thread(target=_follow_parent, daemon=True).start()
    gc.disable()  # the process ends before a collection would pay off
    function = calls[0].function
    try:
        if calls[0].joined:
            answer = function([call.arguments for call in calls]), None
        else:
            answer = [function(*calls[0].arguments)], None
    except Exception as error:
        answer = None, error
    sender.send(answer)


def _follow_parent() -> None:
    """Kill this process, and the programs that it runs, when its parent ends, even if that was killed."""
    multiprocessing.parent_process().join()
    os.killpg(0, signal.SIGKILL)


def _result(result, error: Exception | None):
    if error is not None:
        raise error
    return result
