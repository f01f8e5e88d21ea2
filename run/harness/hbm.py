"""HBM of a harness (`run/harness/hbm.v`): its behaviour, and the files of its contents."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.run.harness.link_view import LinkWork
from neuroncore_rtl.run.harness.verilog_text import arguments, plusargs
from neuroncore_rtl.run.settings import Settings

__all__ = [
    "HBM_ARGUMENTS", "VERILOG", "Hbm", "HbmWork", "hbm_of", "optional_arguments", "random_hbm", "read_memory",
    "write_memory",
]  # fmt: skip

VERILOG = Path(__file__).with_suffix(".v")

_NUMBERS = ("latency", "gap", "port_rate", "rate", "stall", "reorder", "interleave", "seed")
_BORDERS = ("slverr_low", "slverr_high", "decerr_low", "decerr_high")

HBM_ARGUMENTS = {"HBM_ARGUMENTS": arguments(_NUMBERS, hexadecimal=_BORDERS, prefix="hbm_")}
"""The macro with which it takes them."""


def optional_arguments() -> dict[str, str]:
    """Return the macro with which it takes those that are given, and the defaults of `Hbm` for the others."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(Hbm)}
    forms = {name: ("d", int(defaults[name])) for name in _NUMBERS} | dict.fromkeys(_BORDERS, ("h", 0))
    found = (f'if (!$value$plusargs("hbm_{n}=%{form}", {n})) {n} = {value};' for n, (form, value) in forms.items())
    return {"HBM_ARGUMENTS": " ".join(found)}


@dataclass(frozen=True, kw_only=True)
class Hbm:
    """Behaviour of the memory; the defaults are those of a fast and patient one.

    Arguments:
        size: bytes that exist; what lies beyond is answered with DECERR. None: as many as the harness has room for.
        latency: cycles from an address, or the last beat written, to the response; at least 1.
        gap: cycles that a port rests after each burst, for reads and for writes on their own.
        port_rate, rate: bytes that a port, or all together, may read and write in 256 cycles; 0 is no limit.
        stall: every handshake pauses in so many of 256 cycles, at random.
        reorder: in so many of 256 cycles a burst or a response overtakes those of other IDs.
        interleave: whether it does so in the midst of a burst, too.
        slverr, decerr: the first byte and the one behind the last of what is answered with that error; whole beats.
        seed: of what is random.
    """

    size: int | None = None
    latency: int = 64
    gap: int = 0
    port_rate: int = 0
    rate: int = 0
    stall: int = 0
    reorder: int = 0
    interleave: bool = False
    slverr: tuple[int, int] = (0, 0)
    decerr: tuple[int, int] = (0, 0)
    seed: int = 1

    def plusargs(self) -> list[str]:
        """Return the arguments for the simulator."""
        values: dict[str, Any] = {name: int(getattr(self, name)) for name in _NUMBERS}
        values |= {} if self.size is None else {"size": self.size}
        values |= dict(zip(_BORDERS, (f"{at:x}" for at in (*self.slverr, *self.decerr)), strict=True))
        return plusargs(**{f"hbm_{name}": value for name, value in values.items()})


def hbm_of(settings: Settings) -> Hbm:
    """Return the HBM of the variables LATENCY, BANDWIDTH (unlimited without it), STALL and SEED."""
    rate = 256 * settings.values.get("BANDWIDTH", 0)
    return Hbm(latency=settings.latency, rate=rate, stall=settings.stall, seed=settings.seed)


def random_hbm(rng: np.random.Generator, **choices: Sequence[int]) -> Hbm:
    """Return an HBM with random parameters; choices: values of each parameter, which are drawn in this order."""
    drawn: dict[str, Any] = {name: int(rng.choice(values)) for name, values in choices.items()}
    return Hbm(**drawn, seed=int(rng.integers(1, 1 << 31)))


@dataclass(frozen=True, kw_only=True)
class HbmWork(LinkWork):
    """What all work has in common that is done in the HBM of one core or of those of an instance, besides `LinkWork`.

    Arguments:
        memories: uint8 [cores, bytes], what each core's HBM holds from address 0 on; it stays as it is. Of an instance
            the bytes are a multiple of 4096, and what lies beyond them does not exist.
        behaviour: of HBM; of an instance its `size` stays None, and addresses of its errors count core after core.
    """

    memories: np.ndarray
    behaviour: Hbm = Hbm()

    def check_memories(self, cores: int) -> None:
        """Raise ValueError unless there is a memory for each core of an instance."""
        if len(self.memories) != cores or self.memories.shape[1] % 4096:
            raise ValueError(f"memories must be [{cores}, a multiple of 4096], not {list(self.memories.shape)}")

    def hbm_plusargs(self, directory: Path, beat_bytes: int, *, limited: bool) -> list[str]:
        """Write the memories, and return the arguments that load them and that tell how they behave.

        Arguments:
            directory: of the run.
            beat_bytes: of the harness's memory.
            limited: whether a core's addresses end with its bytes.
        """
        cores, room = self.memories.shape
        limits = plusargs(hbm_room=room, hbm_size=cores * room) if limited else []
        return [*self.behaviour.plusargs(), *limits, *write_memory(directory, self.memories.reshape(-1), beat_bytes)]

    def memories_after(self, directory: Path) -> np.ndarray:
        """Return what is in the memories when the run has ended, as many bytes as there were."""
        return read_memory(directory)[: self.memories.size].reshape(self.memories.shape)


def write_memory(directory: Path, content: np.ndarray, beat_bytes: int) -> list[str]:
    """Write what the memory starts with, and return the arguments that load it and that have as much written back.

    Arguments:
        directory: of the run; gets hbm.bin, and in the end hbm_out.bin.
        content: uint8 [bytes], from address 0.
        beat_bytes: of the harness's memory.
    """
    beats = -(-len(content) // beat_bytes)
    padded = np.zeros((beats, beat_bytes), np.uint8)
    padded.reshape(-1)[: len(content)] = content
    (directory / "hbm.bin").write_bytes(padded[:, ::-1].tobytes())
    directory = directory.resolve()
    files = {"hbm": directory / "hbm.bin", "hbm_out": directory / "hbm_out.bin"}
    return plusargs(**files, hbm_beats=beats, hbm_out_beats=beats)


def read_memory(directory: Path) -> np.ndarray:
    """Return what the memory ended with, uint8 [bytes], whole beats."""
    return np.fromfile(directory / "hbm_out.bin", np.uint8)
