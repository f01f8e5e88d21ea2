"""Functions that run in copies of this process: they see all that is here, and what they return is sent back."""

import gc
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait

__all__ = ["Forks"]

_context = multiprocessing.get_context("fork")


class Forks:
    """Calls in processes of their own, as many at a time as there are processors.

    Within `with`; iterating yields for each call its name and a function that returns what it returned, or raises what
    it raised, in the order in which they finish, until none is left. More may be submitted meanwhile.
    """

    def __init__(self):
        self._waiting: deque[tuple[str, Callable, tuple]] = deque()
        self._running: dict[Connection, tuple[str, multiprocessing.Process]] = {}

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, *exception) -> None:
        for _, process in self._running.values():
            process.terminate()
            process.join()

    def submit(self, name: str, function: Callable, *arguments, first: bool = False) -> None:
        """Call a function, as soon as a processor is free; before all others that wait, if it is to be `first`."""
        (self._waiting.appendleft if first else self._waiting.append)((name, function, arguments))
        self._start()

    def __iter__(self) -> Iterator[tuple[str, Callable[[], object]]]:
        while self._running:
            for receiver in wait(list(self._running)):
                name, process = self._running.pop(receiver)
                try:
                    result, error = receiver.recv()
                except EOFError:
                    process.join()
                    result, error = None, RuntimeError(f"{name}: its process ended with status {process.exitcode}")
                process.join()
                self._start()
                yield name, lambda result=result, error=error: _result(result, error)

    def _start(self) -> None:
        while self._waiting and len(self._running) < len(os.sched_getaffinity(0)):
            name, function, arguments = self._waiting.popleft()
            receiver, sender = _context.Pipe(duplex=False)
            process = _context.Process(target=_call, args=(sender, function, arguments), daemon=True)
            process.start()
            sender.close()
            self._running[receiver] = name, process


def _call(sender: Connection, function: Callable, arguments: tuple) -> None:
    gc.disable()  # it ends before that would pay
    try:
        answer = function(*arguments), None
    except Exception as error:
        answer = None, error
    sender.send(answer)


def _result(result, error: Exception | None):
    if error is not None:
        raise error
    return result
