"""Host's end of the link to a board (`spec.host_link`)."""

import time
import zlib
from itertools import pairwise
from typing import Protocol

import serial

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.harness.cores import CoreFault
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.spec import host_link
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_link import Answer, BoardRegister, BoardStatus, LinkCommand

__all__ = ["BOARD_MEMORY_BYTES", "FRAME_BYTES", "HostPort", "LinkError", "SerialLine", "Transport", "make_frame"]

BOARD_MEMORY_BYTES = 32 << 20

FRAME_BYTES = host_link.FRAME_HEADER_BYTES + host_link.CHECK_BYTES
"""Bytes of a frame without a payload."""

ATTEMPTS = 5
"""Most transmissions of a command."""

DISTURBED = (Answer.CORRUPTED, Answer.TRUNCATED)
"""Answers to a disturbed frame, after which the command is sent again."""


class LinkError(RuntimeError):
    """The board refused a command, or gave no valid answer."""


class Transport(Protocol):
    """Serial connection to a board."""

    def exchange(self, data: bytes, wanted: int) -> bytes:
        """Send bytes; return the next `wanted` received bytes, or fewer if the line becomes quiet before."""
        ...

    def drain(self) -> None:
        """Wait until both ends have stopped sending; drop the bytes received meanwhile."""


class SerialLine:
    """A serial port of this computer.

    The line is quiet after `patience_s` seconds without a byte; this is longer than the board's patience.
    """

    def __init__(self, port: str, baud: int, patience_s: float = 0.2):
        self._patience_s = patience_s
        try:
            self._port = serial.serial_for_url(port, baudrate=baud, timeout=patience_s)
        except (serial.SerialException, ValueError) as error:  # the latter for a URL
            rule = "PORT must be a serial port of this computer, such as /dev/ttyUSB0"
            raise LinkError(f"{rule}, not {port!r}: {error}") from error

    def close(self) -> None:
        self._port.close()

    def exchange(self, data: bytes, wanted: int) -> bytes:
        self._port.reset_input_buffer()
        self._port.write(data)
        return self._port.read(wanted)

    def drain(self) -> None:
        time.sleep(self._patience_s)
        self._port.reset_input_buffer()


def make_frame(code: int, tag: int, address: int, length: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame for the link to the board."""
    fields = {"sync": host_link.SYNC, "code": code, "tag": tag, "length": length, "address": address}
    body = b"".join(fields[name].to_bytes(size, "little") for name, size in host_link.HEADER) + payload
    return body + zlib.crc32(body).to_bytes(host_link.CHECK_BYTES, "little")


class HostPort:
    """Commands to a board, each repeated until it has a valid answer; `repeated` counts the repetitions.

    A command raises LinkError if the board refuses it or does not answer.
    """

    def __init__(self, transport: Transport):
        self._transport = transport
        self._tag = 0
        self.repeated = 0

    def write(self, address: int, data: bytes) -> None:
        """Write to HBM, in whole beats."""
        for place, length in _blocks(address, len(data)):
            payload = data[place - address : place - address + length]
            self._command(LinkCommand.WRITE_MEMORY, place, length, payload)

    def read(self, address: int, length: int) -> bytes:
        blocks = _blocks(address, length)
        return b"".join(self._command(LinkCommand.READ_MEMORY, place, part, returns=part) for place, part in blocks)

    def write_register(self, register: int, value: int) -> None:
        self._command(LinkCommand.WRITE_REGISTER, register, 4, value.to_bytes(4, "little"))

    def read_register(self, register: int) -> int:
        return int.from_bytes(self._command(LinkCommand.READ_REGISTER, register, 4, returns=4), "little")

    def check_machine(self, config: Config | None) -> None:
        """Wait until the board's memory is ready; LinkError if the board's core has other parameters than `config`."""
        if (identity := self.read_register(BoardRegister.IDENTITY)) != host_link.IDENTITY_WORD:
            raise LinkError(f"IDENTITY must be {host_link.IDENTITY_WORD:#x}, not {identity:#x}")
        machine = self.read_register(BoardRegister.MACHINE)
        found = {"hbm_bytes": machine & 0xFF, "rows": machine >> 8 & 0xFFF, "columns": machine >> 20}
        if config is not None and (wanted := {name: getattr(config, name) for name in found}) != found:
            wanted, found = (", ".join(f"{n} {v}" for n, v in values.items()) for values in (wanted, found))
            raise LinkError(f"the board's machine must have {wanted}, not {found}")
        while not self.read_register(BoardRegister.STATUS) & BoardStatus.READY:
            pass

    def run_image(self, image: Image, limit: int = 1 << 31) -> Outcome:
        """Load an image, start the core, return the outcome after at most `limit` cycles."""
        self.write_register(BoardRegister.CONTROL, host_link.CONTROL_RESET)
        self.write_register(BoardRegister.CONTROL, 0)
        self.check_machine(image.config)
        self.write(image.base, image.data)
        self.write_register(BoardRegister.BOOT_ADDRESS, image.base)
        self.write_register(BoardRegister.CONTROL, host_link.CONTROL_START)
        over = BoardStatus.DONE | BoardStatus.ERROR
        while not (status := self.read_register(BoardRegister.STATUS)) & over:
            if self.read_register(BoardRegister.CYCLES) > limit:
                break
        while status & BoardStatus.DONE and not status & BoardStatus.QUIET:  # its writes may be in flight
            status = self.read_register(BoardRegister.STATUS)
        printed = min(self.read_register(BoardRegister.CONSOLE_COUNT), host_link.CONSOLE_BYTES)
        console = bytes(self.read_register(BoardRegister.CONSOLE + 4 * at) & 0xFF for at in range(printed))
        ending = Ending.ERROR if status & BoardStatus.ERROR else Ending.FINISHED if status & over else Ending.LIMIT
        return Outcome(
            ending=ending,
            cycles=self.read_register(BoardRegister.CYCLES),
            exit_code=self.read_register(BoardRegister.EXIT_CODE) if status & BoardStatus.DONE else None,
            console=console.decode("latin-1"),
            errors=(self._error(),) if status & BoardStatus.ERROR else (),
            host=True,
        )

    def _error(self) -> CoreFault:
        registers = BoardRegister.ERROR, BoardRegister.ERROR_ADDRESS, BoardRegister.ERROR_DETAIL
        word, address, detail = map(self.read_register, registers)
        return CoreFault(word >> 8, word & 0xFF, address, detail)

    def _command(
        self, command: LinkCommand, address: int, length: int, payload: bytes = b"", returns: int = 0
    ) -> bytes:
        self._tag = (self._tag + 1) % 256
        asked = make_frame(command, self._tag, address, length, payload)
        for attempt in range(ATTEMPTS):
            if attempt:
                self.repeated += 1
                self._transport.drain()
            found = self._transport.exchange(asked, FRAME_BYTES + returns)
            body, check = found[: -host_link.CHECK_BYTES], found[-host_link.CHECK_BYTES :]
            if len(found) < FRAME_BYTES or zlib.crc32(body) != int.from_bytes(check, "little"):
                problem = f"no valid answer, but {len(found)} bytes"
                continue
            code, tag = body[1], body[2]
            if code in DISTURBED or tag != self._tag:
                problem = f"the answer {_name(code)}, tag {tag}"
                continue
            place = f"{_place(command, address)}, {length} bytes"
            if code != Answer.DONE:
                raise LinkError(f"the board answered {_name(code)} to {command.name} at {place}")
            if len(found) != FRAME_BYTES + returns:
                raise LinkError(f"{command.name} at {place} must bring {returns} bytes, not {len(found) - FRAME_BYTES}")
            return body[host_link.FRAME_HEADER_BYTES :]
        place = _place(command, address)
        raise LinkError(f"{command.name} at {place} was sent {ATTEMPTS} times, the last time with {problem}")


def _name(code: int) -> str:
    return Answer(code).name if code in list(Answer) else f"{code:#x}"


def _place(command: LinkCommand, address: int) -> str:
    is_register = command in (LinkCommand.READ_REGISTER, LinkCommand.WRITE_REGISTER) and address in list(BoardRegister)
    return BoardRegister(address).name if is_register else f"{address:#x}"


def _blocks(address: int, length: int) -> list[tuple[int, int]]:
    """Split a range of memory at the multiples of the longest payload; return (address, length) of each part."""
    end = address + length
    borders = range((address // host_link.PAYLOAD_BYTES + 1) * host_link.PAYLOAD_BYTES, end, host_link.PAYLOAD_BYTES)
    return [(first, after - first) for first, after in pairwise([address, *borders, end]) if first < after]
