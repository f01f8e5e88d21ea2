"""Tasks for the tests of campaigns; workers import this module."""

import os
import signal
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

from neuroncore_rtl.tb.campaign.executor import Executor
from neuroncore_rtl.tb.campaign.task import Task, key_of, perform

__all__ = [
    "InProcess", "fragile", "hang_once", "killer", "log_and_square", "refused", "square", "statuses", "task", "tasks",
    "unbuildable", "waiting",
]  # fmt: skip


class InProcess(Executor):
    """Executor that performs each task where it is submitted."""

    workers = 1

    def submit(self, task, runs):
        future = Future()
        future.set_result(perform(task, runs))
        return future


def square(number: int) -> dict:
    print(f"the square of {number}")
    return {"number": number, "square": number * number}


def log_and_square(number: int, log: str, seconds: float = 0.0) -> dict:
    time.sleep(seconds)
    with open(log, "a") as file:
        file.write(f"{number}\n")
    return square(number)


def refused(number: int) -> dict:
    raise ValueError(f"{number} is refused\nand more of it")


def unbuildable(number: int, log: str) -> dict:
    from neuroncore_rtl.run.sim import simulation  # other tasks start in a third of the time without it

    log_and_square(number, log)
    simulation.build(simulation.Design(top="wrong", verilog="module wrong(;\nendmodule\n"))


def killer(number: int) -> dict:
    os.kill(os.getpid(), signal.SIGKILL)


def fragile(number: int, mark: str) -> dict:
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def waiting(number: int, started: str) -> dict:
    Path(started, f"{number}-{os.getpid()}").touch()
    time.sleep(600)


def task(function, number: int, *arguments, group: str = "") -> Task:
    name = function.__name__
    return Task(f"{name}{number}", key_of(name, number), function, (number, *arguments), group)


def tasks(function, count: int, *arguments, group: str = "") -> list[Task]:
    return [task(function, number, *arguments, group=group) for number in range(count)]


def statuses(rows) -> Counter:
    return Counter(row["status"] for row in rows)


def hang_once(number: int, started: str) -> dict:
    first = not any(Path(started).iterdir())
    Path(started, str(os.getpid())).touch()
    if first:
        time.sleep(600)
    return square(number)
