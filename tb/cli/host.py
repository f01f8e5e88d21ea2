"""`make host`: a host's session with a board, or with a simulated one: images go there, run, and their results come
back.

Who is at the other end of the link does not matter to what is done: over a serial port it is a board with the bitstream
of `make bitstream`, else the simulation of the same board.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.golden.core import Core
from neuroncore_rtl.kernels.models import digits
from neuroncore_rtl.kernels.models.digits.network import Classifier
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.tensor import HbmTensor
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.harness.board.board import SimulatedBoard
from neuroncore_rtl.run.harness.board.host_port import HostPort, LinkError, SerialLine, Transport
from neuroncore_rtl.run.report import Report, progress, shown
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.host_link import (
    CONSOLE_BYTES,
    CONTROL_RESET,
    CONTROL_START,
    IDENTITY_WORD,
    BoardRegister,
    BoardStatus,
)
from neuroncore_rtl.spec.isa import cause_name
from neuroncore_rtl.tb.tests.kernels.digits import results, sizes_of
from neuroncore_rtl.tb.tests.kernels.matmul import product_image, random_matrix

__all__ = ["BoardRun", "main", "on_board", "run_image"]

MEMORY_BYTES = 32 << 20
"""Of the board."""

BEAT = 64
"""Places and lengths of what is read are multiples of it: of the beats of every port."""


@dataclass(frozen=True)
class BoardRun:
    """What became of an image on a board.

    Arguments:
        cycles: from the start to the end of its program.
        exit_code: of its program; None if it has not ended.
        console: what it printed, the first `CONSOLE_BYTES` of it.
        error: the core's, in words; None if there is none.
    """

    cycles: int
    exit_code: int | None
    console: str
    error: str | None


@contextmanager
def on_board(settings: Settings, config: Config | None) -> Iterator[Transport]:
    """Give what carries bytes to the board that the settings name, or to a simulated one."""
    if settings.port:
        with SerialLine(settings.port, settings.baud) as line:
            yield line
    else:
        with SimulatedBoard(config).line() as line:
            yield line


def check_machine(port: HostPort, config: Config | None) -> None:
    """See that the board is one, and has this machine; wait until its memory is ready.

    Raises:
        LinkError: if it is not.
    """
    if (identity := port.read_register(BoardRegister.IDENTITY)) != IDENTITY_WORD:
        raise LinkError(f"IDENTITY must be {IDENTITY_WORD:#x}, not {identity:#x}")
    machine = port.read_register(BoardRegister.MACHINE)
    found = {"hbm_bytes": machine & 0xFF, "rows": machine >> 8 & 0xFFF, "columns": machine >> 20}
    if config is not None and (wanted := {name: getattr(config, name) for name in found}) != found:
        raise LinkError(f"the board's machine must have {_words(wanted)}, not {_words(found)}")
    while not port.read_register(BoardRegister.STATUS) & BoardStatus.READY:
        pass


def _words(values: dict[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def run_image(port: HostPort, image: Image, limit: int = 1 << 31) -> BoardRun:
    """Load an image, reset the core, start it, and return what became of it.

    Arguments:
        port: to the board.
        image: its bytes go to HBM.
        limit: cycles after which it is given up.

    Raises:
        LinkError: if the board refuses, or does not answer.
    """
    port.write_register(BoardRegister.CONTROL, CONTROL_RESET)
    port.write_register(BoardRegister.CONTROL, 0)
    check_machine(port, image.config)
    port.write(image.base, image.data)
    port.write_register(BoardRegister.BOOT_ADDRESS, image.base)
    port.write_register(BoardRegister.CONTROL, CONTROL_START)
    over = BoardStatus.DONE | BoardStatus.ERROR
    while not (status := port.read_register(BoardRegister.STATUS)) & over:
        if port.read_register(BoardRegister.CYCLES) > limit:
            break
    while status & BoardStatus.DONE and not status & BoardStatus.QUIET:  # what it wrote may be under way
        status = port.read_register(BoardRegister.STATUS)
    printed = min(port.read_register(BoardRegister.CONSOLE_COUNT), CONSOLE_BYTES)
    console = bytes(port.read_register(BoardRegister.CONSOLE + 4 * place) & 0xFF for place in range(printed))
    return BoardRun(
        cycles=port.read_register(BoardRegister.CYCLES),
        exit_code=port.read_register(BoardRegister.EXIT_CODE) if status & BoardStatus.DONE else None,
        console=console.decode("latin-1"),
        error=_error(port) if status & BoardStatus.ERROR else None,
    )


def _error(port: HostPort) -> str:
    word = port.read_register(BoardRegister.ERROR)
    address, detail = (port.read_register(at) for at in (BoardRegister.ERROR_ADDRESS, BoardRegister.ERROR_DETAIL))
    return f"queue {word >> 8}: record {address:#x}: {cause_name(word & 0xFF)}, detail {detail:#x}"


@dataclass(frozen=True)
class Compared:
    """An image that ran on the board and on golden: its run, HBM as the board has it where it was read, and as golden
    left it; how many bytes were read, how many of them differ, and what else is wrong."""

    run: BoardRun
    hbm: np.ndarray
    compared: int
    mismatches: int
    failures: tuple[str, ...]


def compare(port: HostPort, image: Image, tensors: list[HbmTensor]) -> Compared:
    """Run an image, and compare tensors in HBM, what it printed, and how it ended with golden.

    Arguments:
        port: to the board.
        image: what to run.
        tensors: dense ones, of which all bytes are compared.
    """
    memory = image.memory(-(-(image.base + len(image.data)) // BEAT) * BEAT)
    if len(memory) > MEMORY_BYTES:
        raise UsageError(f"the image must fit the board's {MEMORY_BYTES:,} bytes, not {len(memory):,}")
    hbm = memory.copy()
    with progress("golden"):
        expected = Core(image.config, memory).run(image.base)
    with progress(f"loading {len(image.data):,} bytes, running them, and reading results"):
        run = run_image(port, image)
        mask = np.zeros(len(memory), bool)
        for tensor in tensors:
            end = tensor.address + tensor.size * tensor.format.bits // 8
            mask[tensor.address : end] = True
            first, last = tensor.address // BEAT * BEAT, -(-end // BEAT) * BEAT
            hbm[first:last] = np.frombuffer(port.read(first, last - first), np.uint8)
    failures = []
    if run.error:
        failures.append(f"the core must report no error, but does: {run.error}")
    if run.exit_code != expected.exit_code:
        failures.append(f"the program must exit with {expected.exit_code}, not {run.exit_code}")
    if run.console != (printed := expected.console[:CONSOLE_BYTES].decode("latin-1")):
        failures.append(f"the program must print {printed!r}, not {run.console!r}")
    return Compared(run, hbm, int(mask.sum()), int((hbm != memory)[mask].sum()), tuple(failures))


def _memory(settings: Settings) -> Report:
    """Write random bytes all over memory, then read them back."""
    rng = np.random.default_rng(settings.seed)
    places = [0, MEMORY_BYTES - 512, *(int(place) * 512 for place in rng.integers(MEMORY_BYTES // 512, size=14))]
    blocks = {place: rng.bytes(512) for place in places}
    with on_board(settings, None) as line:
        port = HostPort(line)
        check_machine(port, None)
        for place, block in blocks.items():
            port.write(place, block)
        found = {place: port.read(place, 512) for place in blocks}
    wrong = sum(a != b for place in blocks for a, b in zip(found[place], blocks[place], strict=True))
    return _report(settings, "memory", 512 * len(blocks), wrong, (), {"repeated commands": port.repeated})


def _matmul(settings: Settings) -> Report:
    """Multiply two random matrices."""
    config, rng = settings.config, np.random.default_rng(settings.seed)
    m, k, n = config.columns, config.rows, 8
    a, b = random_matrix(rng, BF16, m, k), random_matrix(rng, BF16, k, n)
    image, product = product_image(a, b, BF16, config)
    with on_board(settings, config) as line:
        port = HostPort(line)
        done = compare(port, image, [product])
    extra = {"shape": f"[{m}, {k}] x [{k}, {n}] bf16", "repeated commands": port.repeated}
    return _report(settings, "matmul", done.compared, done.mismatches, done.failures, extra, done.run.cycles)


def _digits(settings: Settings) -> Report:
    """Classify handwritten digits, batch by batch."""
    config, layers = settings.config, digits.load()
    images, labels = (part[: settings.images] for part in digits.held_out())
    predicted, cycles, compared, mismatches, failures = [], 0, 0, 0, []
    with on_board(settings, config) as line:
        port = HostPort(line)
        for first in range(0, len(images), settings.batch):
            part = images[first : first + settings.batch]
            classifier = Classifier(config, len(part), sizes_of(layers))
            image = classifier.image(layers, part, encode)
            done = compare(port, image, [classifier.digits, classifier.probabilities])
            predicted.append(results(classifier, done.hbm)[0])
            cycles += done.run.cycles
            compared += done.compared
            mismatches += done.mismatches
            failures += done.failures
    right = int((np.concatenate(predicted) == labels).sum())
    extra = {"images": len(images), "read right": right, "repeated commands": port.repeated}
    return _report(settings, "digits", compared, mismatches, tuple(failures), extra, cycles)


def _report(
    settings: Settings,
    test: str,
    compared: int,
    mismatches: int,
    failures: tuple[str, ...],
    extra: dict[str, object],
    cycles: int | None = None,
) -> Report:
    where = f"the board at {settings.port}" if settings.port else "a simulated board"
    machine = {} if test == "memory" else {"config": settings.config.named}
    return Report(
        test=f"host-{test}",
        label=settings.preset,
        settings=settings.values,
        compared=compared,
        mismatches=mismatches,
        cycles=cycles,
        extra={"on": where, **extra, **machine},
        failures=failures,
    )


SESSIONS: dict[str, Callable[[Settings], Report]] = {"memory": _memory, "matmul": _matmul, "digits": _digits}
"""What `TEST` chooses from."""


def main(settings: Settings) -> int:
    """Hold the session, print and store its report, and return the exit status."""
    try:
        report = SESSIONS[settings.test](settings)
    except LinkError as error:
        raise UsageError(str(error)) from error
    report.show()
    print(f"record: {shown(report.write())}")
    return report.exit_status
