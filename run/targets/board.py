"""A board with the core and a host link, or a simulated one: TARGET=board.

The same commands load an image, start the core and read results over a serial port or into the simulation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.harness.board.board import SimulatedBoard
from neuroncore_rtl.run.harness.board.host_port import HostPort, LinkError, SerialLine
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.jobs import ImageJob
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.targets.target import Executed, Target
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_link import (
    CONSOLE_BYTES,
    CONTROL_RESET,
    CONTROL_START,
    IDENTITY_WORD,
    BoardRegister,
    BoardStatus,
)
from neuroncore_rtl.spec.isa import cause_name

__all__ = ["BOARD_MEMORY_BYTES", "BoardTarget", "check_machine", "run_image"]

BOARD_MEMORY_BYTES = 32 << 20
"""Memory of the board."""

BEAT = 64
"""Addresses and lengths of reads are multiples of it: of the beats of every port."""


@dataclass(frozen=True, kw_only=True)
class BoardTarget(Target):
    """A board; the job's outputs are read back and compared with golden, and so are exit code and console.

    Arguments:
        port: serial port of the board; None: a simulated board.
        baud: rate of the port.
        host: an open connection that is used instead.
    """

    name = "board"
    compares = True

    port: str | None = None
    baud: int = 1_000_000
    host: HostPort | None = None

    @contextmanager
    def session(self, config: Config | None) -> Iterator["BoardTarget"]:
        """Give a board with one connection for several jobs; config: as of `connected`."""
        with self.connected(config) as port:
            yield replace(self, host=port)

    @contextmanager
    def connected(self, config: Config | None) -> Iterator[HostPort]:
        """Give a connection to the board; config: of the core that a simulated board has, None: it has none."""
        try:
            if self.host is not None:
                yield self.host
            elif self.port:
                with SerialLine(self.port, self.baud) as line:
                    yield HostPort(line)
            else:
                with SimulatedBoard(config).line() as line:
                    yield HostPort(line)
        except LinkError as error:
            raise UsageError(str(error)) from error

    def execute(self, job: ImageJob) -> Executed:
        """Load an image, run it, and read its outputs; UsageError if it does not fit, or the board does not answer."""
        (image,) = job.images
        memory = np.zeros(-(-job.memories.shape[1] // BEAT) * BEAT, np.uint8)
        if len(memory) > BOARD_MEMORY_BYTES:
            raise UsageError(f"the image must fit the board's {BOARD_MEMORY_BYTES:,} bytes, not {len(memory):,}")
        spans = [_span(tensor) for tensor in job.outputs] if job.outputs is not None else [(0, job.memories.shape[1])]
        known = np.zeros(job.memories.shape, bool)
        with self.connected(job.config) as port:
            with progress(f"loading {len(image.data):,} bytes, running them, and reading results"):
                outcome = run_image(port, image)
                for start, end in spans:
                    known[0, start:end] = True
                    first, last = start // BEAT * BEAT, -(-end // BEAT) * BEAT
                    memory[first:last] = np.frombuffer(port.read(first, last - first), np.uint8)
            outcome.counters["repeated commands"] = port.repeated
        memories = {"hbm": memory[None, : job.memories.shape[1]]}
        return Executed(memories=memories, cycles=outcome.cycles, outcome=outcome, known={"hbm": known})


def _span(tensor) -> tuple[int, int]:
    """Return the first address of a dense tensor, and the one after its last byte."""
    return tensor.address, tensor.address + tensor.size * tensor.format.bits // 8


def check_machine(port: HostPort, config: Config | None) -> None:
    """Wait until the board's memory is ready; LinkError if it is no board, or has another machine than `config`."""
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


def run_image(port: HostPort, image: Image, limit: int = 1 << 31) -> Outcome:
    """Load an image, reset and start the core, and return the outcome; its errors are sentences.

    Arguments:
        port: to the board.
        image: its bytes are written to HBM.
        limit: cycles after which it is stopped.

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
    while status & BoardStatus.DONE and not status & BoardStatus.QUIET:  # its writes may be in flight
        status = port.read_register(BoardRegister.STATUS)
    printed = min(port.read_register(BoardRegister.CONSOLE_COUNT), CONSOLE_BYTES)
    console = bytes(port.read_register(BoardRegister.CONSOLE + 4 * place) & 0xFF for place in range(printed))
    ending = Ending.ERROR if status & BoardStatus.ERROR else Ending.FINISHED if status & over else Ending.LIMIT
    return Outcome(
        ending=ending,
        cycles=port.read_register(BoardRegister.CYCLES),
        exit_code=port.read_register(BoardRegister.EXIT_CODE) if status & BoardStatus.DONE else None,
        console=console.decode("latin-1"),
        errors=(_error(port),) if status & BoardStatus.ERROR else (),
        counters={},
        host=True,
    )


def _error(port: HostPort) -> str:
    word = port.read_register(BoardRegister.ERROR)
    address, detail = (port.read_register(at) for at in (BoardRegister.ERROR_ADDRESS, BoardRegister.ERROR_DETAIL))
    return f"queue {word >> 8}: record {address:#x}: {cause_name(word & 0xFF)}, detail {detail:#x}"
