"""Variables of runs on the core: the target, HBM, the order of instructions; and the targets that they describe."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.program.program import ORDERS, Program
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.settings import (
    PROFILE,
    RECORDED,
    SEED,
    Option,
    Settings,
    UsageError,
    choice,
    configuration_options,
    integer,
)
from neuroncore_rtl.run.targets.board import BoardTarget
from neuroncore_rtl.run.targets.engine import EngineTarget
from neuroncore_rtl.run.targets.golden import Golden
from neuroncore_rtl.run.targets.model import ModelTarget
from neuroncore_rtl.run.targets.rtl import Rtl
from neuroncore_rtl.run.targets.target import Target

__all__ = [
    "BOARD_OPTIONS", "HBM_OPTIONS", "HBM_ROOM", "LATENCY", "ORDER", "STALL", "TILE_OPTION", "check_room",
    "core_options", "hbm_of", "random_hbm", "target_of",
]  # fmt: skip

_STALL = "every stream and memory port that the harness drives pauses in so many of 256 cycles, at random"
STALL = integer("STALL", 0, _STALL, 0, 240)
LATENCY = integer("LATENCY", 64, "cycles from an HBM address to its data", 1, 200)
BANDWIDTH = integer("BANDWIDTH", 0, "bytes per cycle that HBM moves at most, 0 for what its ports carry", 0, 1024)

HBM_ROOM = 1 << 29
"""Bytes of HBM that a simulation has room for: the RTL's and golden's, and files of them as text, are in memory."""

HBM_OPTIONS = (LATENCY, BANDWIDTH, STALL)
"""How HBM behaves. Twice 200 cycles of beats is what its model holds."""

BOARD_OPTIONS = (
    choice("PORT", None, "serial port of the board, such as /dev/ttyUSB0; a simulated board unless given"),
    integer("BAUD", 1_000_000, "baud rate of the port, as the bitstream has it", 1, 12_000_000),
)
"""The board, for TARGET=board."""

_ORDER = "how the instructions of a queue follow each other: as kernels append them, or so that engines are busy"
ORDER = choice("ORDER", Program.order, _ORDER, ORDERS)


TILE_OPTION = integer(
    "TILE",
    None,
    "rows and columns of the array that kernels use, all unless told: the same TILE, the same bits on every PRESET",
    1,
    128,
)


def core_options(target: str, engine: str | None, preset: str) -> tuple[Option, ...]:
    """Return the variables of a TEST of the whole core or of an engine alone, behind its own.

    Arguments:
        target: what it runs on unless told: "core", "engine" or "model".
        engine: what is there alone; None: nothing may be.
        preset: its configuration unless told.
    """
    alone = f"{engine} alone, where HBM plays no part, or " if engine else ""
    where = f"the whole core, or {alone}the core's timing model, where no RTL runs"
    target_option = choice("TARGET", target, where, ("core", "engine", "model") if engine else ("core", "model"))
    return target_option, *configuration_options(preset), ORDER, SEED, *HBM_OPTIONS, *RECORDED, PROFILE


def check_room(size: int) -> None:
    """Refuse what would need more HBM than a simulation has room for, before any of it is made.

    Arguments:
        size: bytes of all tensors in HBM.

    Raises:
        UsageError: if there are too many.
    """
    if size > HBM_ROOM:
        raise UsageError(f"tensors in HBM must have at most {HBM_ROOM:,} bytes to be simulated, not {size:,}")


def hbm_of(settings: Settings) -> Hbm:
    """Return the HBM that the options ask for, and SEED; without BANDWIDTH it has no limit."""
    rate = 256 * settings.values.get("BANDWIDTH", 0)
    return Hbm(latency=settings.latency, rate=rate, stall=settings.stall, seed=settings.seed)


def random_hbm(rng: np.random.Generator, **choices: Sequence[int]) -> Hbm:
    """Return an HBM of some temper; choices: of its parameters, in the order in which they are drawn."""
    drawn: dict[str, Any] = {name: int(rng.choice(values)) for name, values in choices.items()}
    return Hbm(**drawn, seed=int(rng.integers(1, 1 << 31)))


def target_of(settings: Settings) -> Target:
    """Return the target that TARGET names, "core" or "rtl", "engine", "golden", "model" or "board"; without it an
    engine."""
    values, name = settings.values, settings.values.get("TARGET", "engine")
    given = {option: values[option.upper()] for option in _GIVEN[name] if values.get(option.upper()) is not None}
    return {
        "core": Rtl,
        "rtl": Rtl,
        "engine": EngineTarget,
        "golden": Golden,
        "model": ModelTarget,
        "board": BoardTarget,
    }[name](**given)


_SIMULATED = ("sim", "lanes", "waves", "depth", "seed", "profile")
_GIVEN = {
    "core": _SIMULATED,
    "rtl": _SIMULATED,
    "engine": _SIMULATED,
    "golden": ("waves", "profile"),
    "board": ("port", "baud"),
    "model": ("latency", "bandwidth", "stall", "waves", "profile"),
}
"""The variables that each target takes."""
