"""Simulated board: the board without pads, a model of its SDRAM, and the host's end of the UART."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

from neuroncore_rtl.hdl.board.board import Board
from neuroncore_rtl.hdl.board.sdram_chip import MT48LC16M16, SdramChip
from neuroncore_rtl.run.harness.board import session as board_session
from neuroncore_rtl.run.sim import light_start, simulation
from neuroncore_rtl.run.sim.elaboration import elaborated
from neuroncore_rtl.run.sim.layouts import define_lines
from neuroncore_rtl.spec.config import Config

__all__ = ["SDRAM", "SimulatedBoard", "SimulatedLine", "sdram_parameters"]

SDRAM = Path(__file__).with_name("sdram.v")
"""Verilog model of an SDRAM chip."""

TRRD_NS = 15
"""Least time from ACTIVATE of a bank to ACTIVATE of another bank."""


def sdram_parameters(chip: SdramChip, clock_hz: int, start_ns: int | None = None) -> str:
    """Return the parameters of an instance of the Verilog model of an SDRAM chip.

    `start_ns` is the time from power-up to the first command, by default the time that the chip needs.
    """
    times = {field.name.removesuffix("_ns"): getattr(chip, field.name) for field in fields(chip) if "_ns" in field.name}
    times |= {"trrd": TRRD_NS, "trefi": chip.refresh_ns / (1 << chip.row_bits)} | {"start": start_ns or chip.start_ns}
    del times["refresh"]
    values = {name.upper(): round(1000 * time) for name, time in times.items()}
    values |= {"PERIOD": round(1e12 / clock_hz), "TMRD": chip.tmrd, "CAS_LATENCY": chip.cas_latency}
    values |= {name.upper(): getattr(chip, name) for name in ("bank_bits", "row_bits", "column_bits")}
    return ", ".join(f".{name}({value})" for name, value in values.items())


CLOCK_HZ = 25_000_000
"""Clock, which converts the SDRAM's times to cycles."""

DIVISOR = 4
"""Clock cycles per bit on the simulated wire."""

PATIENCE = 400
"""Cycles, the time of 10 bytes, without a byte after which the board drops a frame."""

HOST_PATIENCE = 20_000
"""Cycles that the host stalls for an answer."""

START_NS = 2_000
"""Time from power-up to the first command of the simulated SDRAM in ns; a real chip needs longer."""


class SimulatedLine:
    """A `Transport` to a running simulation; `cycle` is the cycle in which it received the latest bytes."""

    def __init__(self, connection: Any):
        self._connection = connection
        self.cycle = 0

    def exchange(self, data: bytes, wanted: int) -> bytes:
        self._connection.send((data, wanted, HOST_PATIENCE))
        found, self.cycle = self._connection.recv()
        return found

    def drain(self) -> None:
        self.exchange(b"", 1)


@dataclass(frozen=True)
class SimulatedBoard:
    """Simulation of a board with its SDRAM and its host; `config` is the core's parameters, None without a core."""

    config: Config | None

    def design(self) -> simulation.Design:
        config = self.config
        parameters: dict[str, object] = asdict(config) if config else {}
        size = f"{config.rows}x{config.columns}" if config else "memory"
        board = partial(Board, config, MT48LC16M16, CLOCK_HZ, DIVISOR, PATIENCE, START_NS)
        text = elaborated("board", size, board, parameters | {"divisor": DIVISOR, "start": START_NS})
        defines = {
            "CHIP": sdram_parameters(MT48LC16M16, CLOCK_HZ, START_NS),
            "ADDRESS": MT48LC16M16.row_bits,
            "DIVISOR": DIVISOR,
        }
        parts = [define_lines(defines), Path(__file__).with_suffix(".v").read_text(), SDRAM.read_text(), text]
        return simulation.Design("board_bench", "\n".join(parts), clock="clk")

    @contextmanager
    def line(self, sim: str = "verilator") -> Iterator[SimulatedLine]:
        """Simulate the board during this context; simulated time advances only in `exchange`.

        Raises SimulationFailed if the simulation ends early.
        """
        built = simulation.build(self.design(), sim)
        problems: list[Exception] = []
        with simulation.run_directory("board") as directory, Listener(family="AF_UNIX") as listener:
            env = {board_session.SOCKET_VARIABLE: listener.address, "PYGPI_USERS": light_start.ENTRIES}

            def simulate() -> None:
                try:
                    simulation.run_simulation(built, board_session.__name__, run_dir=directory.resolve(), env=env)
                except Exception as error:  # the host's thread raises it
                    problems.append(error)
                    Client(listener.address).close()  # unblock `accept` if the simulation did not start

            thread = threading.Thread(target=simulate)
            thread.start()
            try:
                with listener.accept() as connection:
                    yield SimulatedLine(connection)
                    connection.send(None)
            except (EOFError, ConnectionError) as error:
                thread.join()
                raise problems[0] if problems else error from error
            finally:
                thread.join()
            if problems:
                raise problems[0]
