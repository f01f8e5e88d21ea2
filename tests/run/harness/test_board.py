"""Host software with the simulated board, on lines that drop and corrupt bytes."""

import random
from types import SimpleNamespace

import pytest

from neuroncore_rtl.run.harness.board.board import SimulatedBoard
from neuroncore_rtl.run.harness.board.host_port import HostPort, LinkError
from neuroncore_rtl.spec.host_link import CONTROL_RESET, IDENTITY_WORD, BoardRegister, BoardStatus


class BadLine:
    def __init__(self, line, py_rng: random.Random):
        self._line, self._dice, self._frames, self.disturbed = line, py_rng, 0, 0

    def exchange(self, data: bytes, wanted: int) -> bytes:
        self._frames += 1
        if self._frames % 2 or not data:
            return self._line.exchange(data, wanted)
        self.disturbed += 1
        if self._dice.random() < 0.3:
            return self._broken(self._line.exchange(data, wanted))
        return self._line.exchange(self._broken(data), wanted)

    def drain(self) -> None:
        self._line.drain()

    def _broken(self, data: bytes) -> bytes:
        place = self._dice.randrange(len(data))
        kind = self._dice.randrange(3)
        if kind == 0:
            return data[:place]
        if kind == 1:
            return data[:place] + bytes([data[place] ^ 1 << self._dice.randrange(8)]) + data[place + 1 :]
        return data[:place] + self._dice.randbytes(1) + data[place:]


def test_memory_on_a_line_that_loses_and_changes_bytes(py_rng):
    with SimulatedBoard(None).line() as line:
        bad = BadLine(line, py_rng)
        port = HostPort(bad)
        assert port.read_register(BoardRegister.IDENTITY) == IDENTITY_WORD
        assert port.read_register(BoardRegister.MACHINE) == 8
        for round_ in range(12):
            address, data = py_rng.randrange(1 << 21) * 8, py_rng.randbytes(8 * py_rng.randrange(1, 20))
            port.write(address, data)
            assert port.read(address, len(data)) == data, round_
        assert port.repeated == bad.disturbed > 10


def test_nobody_answers():
    deaf = SimpleNamespace(exchange=lambda data, wanted: b"", drain=lambda: None)
    with pytest.raises(LinkError, match=r"^READ_REGISTER at STATUS was sent 5 times, the last .* but 0 bytes$"):
        HostPort(deaf).read_register(BoardRegister.STATUS)


def test_the_board_refuses():
    with SimulatedBoard(None).line() as line:
        port = HostPort(line)
        port.write(0, bytes(range(16)))
        with pytest.raises(LinkError, match=r"^the board answered REFUSED to READ_MEMORY at 0x4, 8 bytes$"):
            port.read(4, 8)
        with pytest.raises(LinkError, match=r"^the board answered FAILED to WRITE_MEMORY at 0x2000000, 8 bytes$"):
            port.write(32 << 20, bytes(8))
        with pytest.raises(LinkError, match=r"^the board answered FAILED to READ_MEMORY at 0x2000000, 8 bytes$"):
            port.read(32 << 20, 8)
        with pytest.raises(LinkError, match=r"^the board answered REFUSED to READ_REGISTER at 0x100, 4 bytes$"):
            port.read_register(0x100)
        assert port.repeated == 0
        # Memory persists during a reset of any length; the model checks that it is refreshed.
        port.write_register(BoardRegister.CONTROL, CONTROL_RESET)
        assert port.read_register(BoardRegister.CONTROL) == CONTROL_RESET
        line.drain()
        port.write_register(BoardRegister.CONTROL, 0)
        assert port.read_register(BoardRegister.STATUS) & BoardStatus.READY
        assert port.read(0, 16) == bytes(range(16))
