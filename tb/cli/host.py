"""`make host`: a session with a board, or a simulated one, that loads images, runs them and reads their results."""

from collections.abc import Callable, Mapping

import numpy as np

from neuroncore_rtl.run.harness.board.host_port import BOARD_MEMORY_BYTES
from neuroncore_rtl.run.report import Report, shown
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.targets import BoardTarget
from neuroncore_rtl.tb.tests.kernels import digits, matmul
from neuroncore_rtl.tb.tests.kernels.digits import results_of
from neuroncore_rtl.tb.tests.scenario import Scenario, run_jobs

__all__ = ["run_session"]

COLUMNS = 8
"""Columns of the right matrix of TEST=matmul."""


def _board(settings: Settings) -> BoardTarget:
    return BoardTarget(port=settings.port, baud=settings.baud)


def _memory(settings: Settings) -> Report:
    """Write random bytes all over memory, then read them back."""
    rng = np.random.default_rng(settings.seed)
    places = [
        0,
        BOARD_MEMORY_BYTES - 512,
        *(int(place) * 512 for place in rng.integers(BOARD_MEMORY_BYTES // 512, size=14)),
    ]
    blocks = {place: rng.bytes(512) for place in places}
    with _board(settings).connected(None) as port:
        port.check_machine(None)
        for place, block in blocks.items():
            port.write(place, block)
        found = {place: port.read(place, 512) for place in blocks}
    wrong = sum(a != b for place in blocks for a, b in zip(found[place], blocks[place], strict=True))
    extra = {"on": _where(settings), "repeated commands": port.repeated}
    return _report(settings, extra, 512 * len(blocks), wrong)


def _matmul(settings: Settings) -> Report:
    """Multiply two random matrices."""
    m, k = settings.config.columns, settings.config.rows
    return _of_test(settings, matmul.TEST, {"M": m, "K": k, "N": COLUMNS}, lambda results: {
        "shape": f"[{m}, {k}] x [{k}, {COLUMNS}] bf16",
    })  # fmt: skip


def _digits(settings: Settings) -> Report:
    """Classify handwritten digits, batch by batch."""

    def rows(results) -> dict[str, object]:
        guessed = [results_of(result.job.subject.classifier, result.memory)[0] for result in results]
        _, labels = digits.held_out(settings)
        right = int((np.concatenate(guessed) == labels).sum())
        return {"images": len(labels), "read right": right}

    return _of_test(settings, digits.TEST, {}, rows)


def _of_test(settings: Settings, test: Scenario, variables: Mapping[str, int], rows: Callable) -> Report:
    """Run the jobs of a TEST on the board; variables: those of the TEST that the command does not have."""
    given = test.settings().values | {**settings.values, **variables, "TARGET": "core"}
    with _board(settings).connected(settings.config) as port:
        results = [*run_jobs(test.jobs(Settings(given)), BoardTarget(host=port))]
    repeated = results[-1].outcome.counters["repeated commands"]
    failures = tuple(failure for result in results for failure in result.failures)
    extra = {"on": _where(settings), **rows(results), "repeated commands": repeated, "config": settings.config.named}
    compared, mismatches, cycles = (sum(getattr(r, name) for r in results) for name in _COUNTED)
    return _report(settings, extra, compared, mismatches, failures, cycles)


_COUNTED = ("compared", "mismatches", "cycles")


def _where(settings: Settings) -> str:
    return f"the board at {settings.port}" if settings.port else "a simulated board"


def _report(
    settings: Settings,
    extra: Mapping[str, object],
    compared: int,
    mismatches: int,
    failures: tuple[str, ...] = (),
    cycles: int | None = None,
) -> Report:
    counted = {"compared": compared, "mismatches": mismatches, "cycles": cycles, "failures": failures}
    return Report(test=f"host-{settings.test}", label=settings.preset, settings=settings.values, extra=extra, **counted)


SESSIONS: dict[str, Callable[[Settings], Report]] = {"memory": _memory, "matmul": _matmul, "digits": _digits}
"""The choices of TEST."""


def run_session(settings: Settings) -> int:
    """Hold the session, print and store its report, and return the exit status."""
    report = SESSIONS[settings.test](settings)
    report.show()
    print(f"record: {shown(report.write())}")
    return report.exit_status
