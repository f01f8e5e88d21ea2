"""Variables of a TEST: options and their values, commands, and the options that several TESTs share."""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroncore_rtl.kernels.program.program import ORDERS, Program
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.sim.simulation import SIMULATORS
from neuroncore_rtl.run.sim.vectors import WAYS
from neuroncore_rtl.spec.config import PRESETS, Config, preset_named
from neuroncore_rtl.spec.parameters import parameters

__all__ = [
    "BOARD_OPTIONS", "HBM_OPTIONS", "LANES_OPTION", "LATENCY", "ORDER", "PROFILE", "RECORDED", "SEED", "SIM", "STALL",
    "TILE_OPTION", "WAVES", "Command", "Option", "Settings", "UsageError", "check_room", "choice",
    "configuration_options", "core_options", "dtype_option", "integer", "later", "refusals", "switch",
]  # fmt: skip


class UsageError(ValueError):
    """An invalid request of the user; the message names the rule."""


@contextmanager
def refusals() -> Iterator[None]:
    """Raise UsageError for a ValueError of a kernel, such as tensors that do not fit."""
    try:
        yield
    except ValueError as refusal:
        raise UsageError(str(refusal)) from refusal


@dataclass(frozen=True, kw_only=True)
class Option:
    """A variable of a TEST, given as NAME=VALUE to make or as --name VALUE on the command line.

    Arguments:
        name: in capitals.
        type: int, str or Path.
        default: the value unless given; None: no value, or one derived from other variables.
        help: a short description.
        choices: the valid values of a str; empty: any.
        minimum, maximum: the range of an int; maximum None: no limit.
    """

    name: str
    type: type
    default: int | str | Path | None
    help: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None

    def parse(self, text: str) -> int | str | Path:
        """Return the value of `text`; raise UsageError, with the option, the rule and the text, if it is not valid."""
        if self.type is int:
            # Decimal digits only: int() would also accept underscores, blanks and the digits of other scripts.
            if not re.fullmatch(r"-?[0-9]{1,18}", text) or not self._in_range(int(text)):
                raise UsageError(f"{self.name} must be {self._range()}, not {text!r}")
            return int(text)
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} must be one of {', '.join(self.choices)}, not {text!r}")
        if self.type is Path and not Path(text).is_file():
            raise UsageError(f"{self.name} must be an existing file, not {text!r}")
        return self.type(text)

    def _in_range(self, value: int) -> bool:
        return value >= self.minimum and (self.maximum is None or value <= self.maximum)

    def _range(self) -> str:
        most = self.maximum
        return f"an integer of at least {self.minimum}" if most is None else f"an integer from {self.minimum} to {most}"

    def describe(self) -> str:
        """Return the help with the valid values and the default."""
        valid = ", ".join(self.choices) if self.choices else self._range() if self.type is int else ""
        default = "" if self.default is None else f"default {self.default}"
        details = "; ".join(part for part in (valid, default) if part)
        return f"{self.help} ({details})" if details else self.help


@dataclass(frozen=True)
class Settings:
    """The values of a command's options; the option MAC_LATENCY is the attribute `mac_latency`.

    Arguments:
        values: by the options' names in capitals.
        defaults: default values of some of them.
    """

    values: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name.upper()]
        except KeyError:
            raise AttributeError(f"this command has no option {name.upper()}") from None

    @property
    def non_defaults(self) -> dict[str, Any]:
        """The values that differ from their defaults."""
        return {name: value for name, value in self.values.items() if value != self.defaults.get(name, value)}

    @property
    def config(self) -> Config:
        """The preset with the given parameters; UsageError if they are not valid together."""
        overrides = {name: self.values.get(name.upper()) for name in Config.RANGES}
        try:
            return preset_named(self.preset).with_overrides(**overrides)
        except ValueError as error:
            raise UsageError(str(error)) from None


@dataclass(frozen=True)
class Command:
    """A TEST, or another command.

    Arguments:
        name: value of TEST=.
        summary: in one line.
        options: the variables, in the order of help; LANES is inserted after SIM.
        run: executes the command and returns its report, or its exit status if it is no TEST.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    run: Callable[[Settings], Report | int]

    def __post_init__(self):
        if SIM in self.options:
            at = self.options.index(SIM) + 1
            object.__setattr__(self, "options", (*self.options[:at], LANES_OPTION, *self.options[at:]))

    def command(self, settings: Settings, **changed: object) -> str:
        """Return the shell command that repeats a run; changed: other values, by the options' names."""
        values = {**settings.values, **changed}
        words = [f"{one.name}={values[one.name]}" for one in self.options if values[one.name] != one.default]
        return " ".join(["make sim", f"TEST={self.name}", *words])

    def settings(self, assignments: Iterable[str] = (), **values: object) -> Settings:
        """Return settings from NAME=VALUE texts and from parsed values, with defaults for the other options.

        Raises:
            UsageError: if a text is no assignment, a name is no option, or a value is not valid.
        """
        options = {option.name: option for option in self.options}
        chosen: dict[str, Any] = {name: option.default for name, option in options.items()} | values
        for assignment in assignments:
            name, equals, text = assignment.partition("=")
            if not equals:
                raise UsageError(f"a variable is given as NAME=VALUE, not {assignment!r}")
            if name not in options:
                raise UsageError(f"a variable of {self.name} must be one of {', '.join(options)}, not {name!r}")
            chosen[name] = options[name].parse(text)
        return Settings(chosen, {name: option.default for name, option in options.items()})


def later(module: str, name: str) -> Callable[[Settings], object]:
    """Return a function of a module of this package; the module is imported when the function is called."""
    return lambda settings: getattr(importlib.import_module(f"neuroncore_rtl.{module}"), name)(settings)


def integer(name: str, default: int | None, help: str, minimum: int, maximum: int | None = None) -> Option:
    """Return a variable that is an integer of a range; arguments: see `Option`."""
    return Option(name=name, type=int, default=default, help=help, minimum=minimum, maximum=maximum)


def switch(name: str, default: int, help: str) -> Option:
    """Return a variable that is 0 or 1."""
    return integer(name, default, help, 0, 1)


def choice(name: str, default: str | None, help: str, choices: Iterable[str] = ()) -> Option:
    """Return a variable that is one of some words, or any word; arguments: see `Option`."""
    return Option(name=name, type=str, default=default, help=help, choices=tuple(choices))


def configuration_options(default_preset: str) -> tuple[Option, ...]:
    """Return PRESET, and an option that overrides each parameter of the preset."""
    overrides = (
        integer(one.name.upper(), None, one.sentence.partition(";")[0], one.low, one.high)
        for one in parameters().values()
    )
    return choice(
        "PRESET", default_preset, "named configuration; each variable of a parameter overrides it", PRESETS
    ), *overrides


SEED = integer("SEED", 1, "seed of the random data", 0, 2**32 - 1)
SIM = choice("SIM", SIMULATORS[0], "simulator", SIMULATORS)
LANES_OPTION = choice(
    "LANES",
    None,
    "simulation of replicated modules in Verilator, as vectors or one by one; unless given, the environment's LANES, "
    "or vector; scalar with WAVES=1",
    WAYS,
)
WAVES = switch("WAVES", 0, "1 records a waveform")
DEPTH = integer("DEPTH", 3, "levels of the hierarchy in the waveform, 0 for all", 0, 99)
PROFILE = integer("PROFILE", None, "1 writes a profile of a run on the core or on its timing model", 0, 1)
RECORDED = (SIM, WAVES, DEPTH)
"""The simulator, and the recorded waveform."""

_STALL = "rate, in 256ths of the cycles, of random pauses on every stream and memory port that the harness drives"
STALL = integer("STALL", 0, _STALL, 0, 240)
LATENCY = integer("LATENCY", 64, "cycles from an HBM address to its data", 1, 200)
BANDWIDTH = integer("BANDWIDTH", 0, "most bytes per cycle of HBM, 0 for the width of its ports", 0, 1024)
HBM_OPTIONS = (LATENCY, BANDWIDTH, STALL)
"""Behaviour of HBM. Its model holds twice 200 cycles of beats."""

BOARD_OPTIONS = (
    choice("PORT", None, "serial port of the board, such as /dev/ttyUSB0; a simulated board unless given"),
    integer("BAUD", 1_000_000, "baud rate of the port, as in the bitstream", 1, 12_000_000),
)
"""The board, for TARGET=board."""

_ORDER = "instructions of each queue in program order, or scheduled to keep the engines busy"
ORDER = choice("ORDER", Program.order, _ORDER, ORDERS)
_TILE = "rows and columns of the array that kernels use, all unless given: the same TILE, the same bits on every PRESET"
TILE_OPTION = integer("TILE", None, _TILE, 1, 128)


def dtype_option(choices: Iterable[str]) -> Option:
    """Return DTYPE, a choice of number formats."""
    return choice("DTYPE", "bf16", "number format of the operands", choices)


def core_options(target: str, engine: str | None, preset: str) -> tuple[Option, ...]:
    """Return the variables of a TEST that follow its own, with the defaults of TARGET and PRESET.

    `engine` names the engine that can run without the core; None: none can.
    """
    alone = f"{engine} alone, where HBM plays no part, or " if engine else ""
    where = f"the whole core, or {alone}the core's timing model, where no RTL runs"
    target_option = choice("TARGET", target, where, ("core", "engine", "model") if engine else ("core", "model"))
    return target_option, *configuration_options(preset), ORDER, SEED, *HBM_OPTIONS, *RECORDED, PROFILE


HBM_ROOM = 1 << 29
"""Most bytes of HBM in a simulation: memory holds those of the RTL, those of golden, and both as text."""


def check_room(size: int) -> None:
    """Raise UsageError if tensors of `size` bytes exceed the HBM of a simulation; call it before they are made."""
    if size > HBM_ROOM:
        raise UsageError(f"tensors in HBM must have at most {HBM_ROOM:,} bytes to be simulated, not {size:,}")
