import inspect
import random
from functools import partial, wraps

import pytest

from neuroncore_rtl.hdl.board.host_link import HostLink
from neuroncore_rtl.spec.host_link import Answer, LinkCommand
from tests.hdl.board.frames import Line, frame, parsed, write
from tests.hdl.memory.axi_memory import serve_reads, serve_writes
from tests.hdl.simulation import drive, pulse, simulate

SIZE = 8

PATIENCE = 30
"""Cycles without a byte after which the line is idle."""

BROKEN_ADDRESS = 0x400
"""Address with error responses."""

REGISTERS = {0x00: 0x12345678, 0x04: 0}
MEMORY = random.Random(1).randbytes(2048)
"""Contents at the start."""


class Board:
    """Host link with a board's memory and registers; the coroutine `bench` gets the host's line and the board."""

    def __init__(self, bench, *, stall: float = 0.0, silent: bool = False):
        self.memory, self.registers, self.bursts = bytearray(MEMORY), dict(REGISTERS), []
        dut = self.dut = HostLink(SIZE, 1, PATIENCE, memory_patience=1000)
        served = {"axi": dut.axi, "memory": self.memory, "stall": stall}
        reads = partial(serve_reads, errors={BROKEN_ADDRESS + SIZE}, **served)
        writes = partial(serve_writes, bursts=self.bursts, errors={BROKEN_ADDRESS}, **served)
        simulate(
            dut,
            lambda ctx: bench(Line(ctx, dut), self),
            background=[self._answer, *([] if silent else (reads, writes))],
        )

    async def _answer(self, ctx):
        bus = self.dut.bus
        ctx.set(bus.ready, 1)
        while True:
            *_, valid, address, writes, data = await ctx.tick().sample(bus.valid, bus.address, bus.write, bus.data)
            if valid and writes and address in self.registers:
                self.registers[address] = data
            drive(ctx, bus, result=self.registers.get(address, 0), error=address not in self.registers, response=valid)


def on_board(**options):
    def decorate(bench):
        _, _, *parameters = inspect.signature(bench).parameters.values()

        @wraps(bench)
        def test(**arguments):
            Board(partial(bench, **arguments), **options)

        test.__signature__ = inspect.Signature(parameters)
        return test

    return decorate


async def check_alive(line: Line) -> None:
    found = await line.ask(frame(LinkCommand.READ_REGISTER, 0, 4, tag=77))
    assert found == (Answer.DONE, 77, REGISTERS[0].to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("stall", "blocks"), [(0.0, [(0, 512), (512 + 8, 24), (1024 - 8, 8)]), (0.5, [(512, 64)])], ids=["free", "stalled"]
)
def test_memory_is_written_and_read(stall, blocks):
    data = random.Random(2).randbytes(512)

    async def bench(line, board):
        for tag, (address, length) in enumerate(blocks, 253):
            before = bytes(board.memory)
            assert await line.ask(write(address, data[:length], tag)) == (Answer.DONE, tag, b"")
            assert board.memory == before[:address] + data[:length] + before[address + length :]
            found = await line.ask(frame(LinkCommand.READ_MEMORY, address, length, tag=tag))
            assert found == (Answer.DONE, tag, data[:length])
        assert [(address, SIZE * beats) for _, address, beats in board.bursts] == blocks

    Board(bench, stall=stall)


@on_board()
async def test_registers_are_written_and_read(line, board):
    await check_alive(line)
    assert await line.ask(write(4, b"\x01\x02\x03\x84", 9, LinkCommand.WRITE_REGISTER)) == (Answer.DONE, 9, b"")
    assert board.registers[4] == 0x84030201
    assert await line.ask(frame(LinkCommand.READ_REGISTER, 4, 4)) == (Answer.DONE, 0, b"\x01\x02\x03\x84")


REFUSED = {
    "no such command": (frame(9, 0, 4), Answer.UNKNOWN),
    "no such register": (frame(LinkCommand.READ_REGISTER, 8, 4), Answer.REFUSED),
    "half a register": (frame(LinkCommand.READ_REGISTER, 0, 2), Answer.REFUSED),
    "a register at an odd address": (frame(LinkCommand.READ_REGISTER, 2, 4), Answer.REFUSED),
    "half a beat": (write(0, b"\xff" * 4), Answer.REFUSED),
    "an odd address": (frame(LinkCommand.READ_MEMORY, 4, 8), Answer.REFUSED),
    "nothing": (frame(LinkCommand.READ_MEMORY, 0, 0), Answer.REFUSED),
    "nothing written": (write(0, b""), Answer.REFUSED),
    "beyond a block": (frame(LinkCommand.READ_MEMORY, 512 - 8, 16), Answer.REFUSED),
    "more than a block": (frame(LinkCommand.READ_MEMORY, 0, 1024), Answer.REFUSED),
    "memory refuses a write": (write(BROKEN_ADDRESS, bytes(8)), Answer.FAILED),
    "memory refuses a beat": (frame(LinkCommand.READ_MEMORY, BROKEN_ADDRESS, 24), Answer.FAILED),
}


@pytest.mark.parametrize("case", REFUSED)
@on_board()
async def test_refused(line, board, case):
    request, answer = REFUSED[case]
    assert await line.ask(request) == (answer, 0, b"")
    assert answer == Answer.FAILED or (board.memory == MEMORY and not board.bursts)
    assert board.registers == REGISTERS
    await check_alive(line)


@on_board()
async def test_a_frame_with_a_flipped_bit_is_answered_once_and_not_executed(line, board):
    request = write(0, b"\xff" * 8, 3)
    for bit in (*range(0, 8 * 9, 5), 8 * 4, 8 * 4 + 7, 8 * 9, 8 * 16 + 7, 8 * 17, 8 * 20 + 7):
        flipped = int.from_bytes(request, "little") ^ 1 << bit
        answer, _, payload = await line.ask(flipped.to_bytes(len(request), "little"))
        assert answer in (Answer.CORRUPTED, Answer.TRUNCATED) and payload == b"", bit
        await check_alive(line)
    assert board.memory == MEMORY and not board.bursts


@on_board()
async def test_a_truncated_frame_or_surplus_bytes_are_not_executed(line, board):
    request = write(0, b"\xff" * 8)
    pieces = dict.fromkeys((request[:length] for length in (1, 2, 8, 9, 10, 17, 20)), Answer.TRUNCATED)
    pieces |= dict.fromkeys((request[start:] for start in (1, 5, 20)), Answer.CORRUPTED)
    for piece, answer in pieces.items():
        assert (await line.ask(piece))[0] == answer
        await check_alive(line)
    assert board.memory == MEMORY and not board.bursts


@on_board()
async def test_gaps_within_a_frame_are_shorter_than_its_end(line, board):
    request = write(0, bytes(8))
    await line.send(request[:-1], gap=PATIENCE)
    assert (await line.ask(request[-1:]))[0] == Answer.DONE
    assert (await line.ask(request[:-1]))[0] == Answer.TRUNCATED


@pytest.mark.parametrize(
    ("sent", "breaks"),
    [(random.Random(4).randbytes(100).replace(b"\xa5", b""), False), (write(0, bytes(8))[:12], True)],
    ids=["noise", "break"],
)
@on_board()
async def test_noise_and_a_break_within_a_frame_are_answered_once(line, board, sent, breaks):
    await line.send(sent)
    if breaks:
        await pulse(line.ctx, line.link.broken)
    found = await line.receive()
    assert len(found) == 13 and parsed(found)[0] == Answer.CORRUPTED
    await check_alive(line)


@on_board(silent=True)
async def test_memory_without_a_response_is_an_error(line, board):
    for _ in range(2):
        assert (await line.ask(frame(LinkCommand.READ_MEMORY, 0, 8)))[0] == Answer.FAILED
        await check_alive(line)
