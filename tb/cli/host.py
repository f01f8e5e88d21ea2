"""`make host`: a session with a real or simulated board that loads images, runs them and checks their results."""

from collections.abc import Callable, Mapping

import numpy as np

from neuroncore_rtl.run.harness.board.host_port import BOARD_MEMORY_BYTES
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.targets import BoardTarget
from neuroncore_rtl.tb.tests.kernels import digits, matmul
from neuroncore_rtl.tb.tests.kernels.digits import results_of
from neuroncore_rtl.tb.tests.scenario import Scenario, run_jobs

__all__ = ["run_session"]

COLUMNS = 8


def _memory(settings: Settings) -> dict[str, object]:
    rng = np.random.default_rng(settings.seed)
    blocks = (0, BOARD_MEMORY_BYTES // 512 - 1, *rng.integers(BOARD_MEMORY_BYTES // 512, size=14))
    blocks = {512 * int(block): rng.bytes(512) for block in blocks}
    with BoardTarget(port=settings.port, baud=settings.baud).connected(None) as port:
        port.check_machine(None)
        for address, block in blocks.items():
            port.write(address, block)
        found = {address: port.read(address, 512) for address in blocks}
    wrong = sum(a != b for address in blocks for a, b in zip(found[address], blocks[address], strict=True))
    return {"rows": {"repeated_commands": port.repeated}, "compared": 512 * len(blocks), "mismatches": wrong}


def _matmul(settings: Settings) -> dict[str, object]:
    m, k = settings.config.columns, settings.config.rows
    shape = {"shape": f"[{m}, {k}] x [{k}, {COLUMNS}] bf16"}
    return _run_test(settings, matmul.TEST, {"M": m, "K": k, "N": COLUMNS}, lambda results: shape)


def _digits(settings: Settings) -> dict[str, object]:
    def rows(results) -> dict[str, object]:
        guessed = [results_of(result.job.subject.classifier, result.memory)[0] for result in results]
        _, labels = digits.held_out(settings)
        return {"images": len(labels), "read_right": int((np.concatenate(guessed) == labels).sum())}

    return _run_test(settings, digits.TEST, {}, rows)


def _run_test(settings: Settings, test: Scenario, variables: Mapping[str, int], rows: Callable) -> dict[str, object]:
    """Run the jobs of a TEST on the board; `variables` are the TEST's variables that `make host` does not have."""
    given = test.settings().values | {**settings.values, **variables, "TARGET": "core"}
    with BoardTarget(port=settings.port, baud=settings.baud).connected(settings.config) as port:
        results = [*run_jobs(test.jobs(Settings(given)), BoardTarget(host=port))]
    failures = tuple(failure for result in results for failure in result.failures)
    table = rows(results) | {"repeated_commands": results[-1].outcome.counters["repeated commands"]}
    table["config"] = settings.config.named
    sums = {name: sum(getattr(one, name) for one in results) for name in ("compared", "mismatches", "cycles")}
    return {"rows": table, "failures": failures, **sums}


SESSIONS = {"memory": _memory, "matmul": _matmul, "digits": _digits}
"""Functions that run a session and return fields of its report, by the value of the variable TEST."""


def run_session(settings: Settings) -> int:
    """Run the session; return the exit status."""
    found = SESSIONS[settings.test](settings)
    board = f"the board at {settings.port}" if settings.port else "a simulated board"
    found["rows"] = {"on": board, **found["rows"]}
    report = Report(test="host", label=settings.label, settings=settings.values, **found)
    report.show()
    print(f"record: {display_path(report.write())}")
    return report.exit_status
