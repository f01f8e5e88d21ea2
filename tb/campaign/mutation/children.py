"""Forked child processes: each continues from the parent's state with one mutant, and reports one result."""

import contextlib
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Child", "answer", "fork_all"]


@dataclass(frozen=True)
class Child:
    """Result of a test in a child process.

    `how` a test failed is "differs" (an assertion), "endless", or "breaks" (another exception). "lost" counts as
    passed: the process ended without a result.
    """

    passed: bool
    how: str
    says: str
    cycles: int
    seconds: float


def answer(pipe: int, child: Child) -> None:
    """Send the result of this child process and end it."""
    try:
        os.write(pipe, pickle.dumps(child))
    finally:
        os._exit(0)  # even if the parent has closed the pipe


def fork_all(
    numbers: list[int], workers: int, patience: float, become: Callable[[int, int], None]
) -> dict[int, Child] | None:
    """Fork a child per mutant's number; each child calls `become` and returns None, the parent returns the results."""
    found: dict[int, Child] = {}
    todo, running = list(reversed(numbers)), {}
    while todo or running:
        while todo and len(running) < workers:
            number = todo.pop()
            ours, theirs = os.pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)  # so that its own processes can be killed with it
                os.close(ours)
                for other, *_ in running.values():
                    os.close(other)
                become(number, theirs)
                return None
            os.close(theirs)
            running[number] = (ours, pid, time.monotonic())
        readable, _, _ = select.select([pipe for pipe, *_ in running.values()], [], [], 1.0)
        for number, (pipe, pid, since) in list(running.items()):
            late = time.monotonic() - since > patience
            if pipe not in readable and not late:
                continue
            with open(pipe, "rb") as file:
                said = b"" if late and pipe not in readable else file.read()
            if not said:
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError):
                        kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            since = time.monotonic() - since
            endless = Child(False, "endless", "given up", 0, since)
            found[number] = pickle.loads(said) if said else endless if late else Child(True, "lost", "", 0, since)
            del running[number]
    return found
