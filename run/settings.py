"""What a bench is and which options it takes: the records from which the command line, help and refusals are made."""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.sim.simulation import SIMULATORS
from neuroncore_rtl.run.sim.vectors import WAYS
from neuroncore_rtl.spec.config import PRESETS, Config, preset_named

__all__ = [
    "LANES_OPTION", "PROFILE", "RECORDED", "SEED", "SIM", "WAVES", "Command", "Option", "Settings", "UsageError",
    "choice", "configuration_options", "dtype_option", "integer", "later", "refusals", "switch",
]  # fmt: skip


class UsageError(ValueError):
    """What was asked for does not exist or is out of range; the message says what would be valid."""


@contextmanager
def refusals() -> Iterator[None]:
    """Report what a kernel refuses, such as tensors that do not fit, as what it is: a mistake of the user's."""
    try:
        yield
    except ValueError as refusal:
        raise UsageError(str(refusal)) from refusal


@dataclass(frozen=True, kw_only=True)
class Option:
    """A variable of a TEST, given as NAME=VALUE to make or as --name VALUE on the command line.

    Arguments:
        name: in capitals, as make variables are.
        type: int, str or Path.
        default: its value when it is not given; None if there is none, or if something else decides then.
        help: what it is, in a few words.
        choices: the valid values of a str; empty if any will do.
        minimum, maximum: the range of an int; None where it has no end.
    """

    name: str
    type: type
    default: int | str | Path | None
    help: str
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def parse(self, text: str) -> int | str | Path:
        """Return the value that `text` stands for.

        Raises:
            UsageError: if it stands for none; the message names the option, the rule and the text.
        """
        if self.type is int:
            return self._parse_integer(text)
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} must be one of {', '.join(self.choices)}, not {text!r}")
        if self.type is Path and not Path(text).is_file():
            raise UsageError(f"{self.name} must be an existing file, not {text!r}")
        return self.type(text)

    def _parse_integer(self, text: str) -> int:
        # Plain decimal digits only: int() would take underscores, blanks and the digits of other scripts as well.
        valid = re.fullmatch(r"-?[0-9]{1,18}", text)
        if not valid or not self._in_range(int(text)):
            raise UsageError(f"{self.name} must be {self._range()}, not {text!r}")
        return int(text)

    def _in_range(self, value: int) -> bool:
        low = self.minimum is None or value >= self.minimum
        return low and (self.maximum is None or value <= self.maximum)

    def _range(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f"an integer from {self.minimum} to {self.maximum}"
        if self.minimum is not None:
            return f"an integer of at least {self.minimum}"
        return "an integer" if self.maximum is None else f"an integer of at most {self.maximum}"

    def describe(self) -> str:
        """Return its help with the valid values and the default."""
        valid = ", ".join(self.choices) if self.choices else self._range() if self.type is int else ""
        default = "" if self.default is None else f"default {self.default}"
        details = "; ".join(part for part in (valid, default) if part)
        return f"{self.help} ({details})" if details else self.help


@dataclass(frozen=True)
class Settings:
    """The values of a bench's options; the option MAC_LATENCY is the attribute `mac_latency`.

    Arguments:
        values: by the options' names in capitals.
        defaults: what they are unless told, of some of them.
    """

    values: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name.upper()]
        except KeyError:
            raise AttributeError(f"this bench has no option {name.upper()}") from None

    @property
    def told(self) -> dict[str, Any]:
        """The values that are other than their defaults."""
        return {name: value for name, value in self.values.items() if value != self.defaults.get(name, value)}

    @property
    def config(self) -> Config:
        """The preset with the parameters that were given on top of it.

        Raises:
            UsageError: if there is no such machine.
        """
        overrides = {name: self.values.get(name.upper()) for name in Config.RANGES}
        try:
            return preset_named(self.preset).with_overrides(**overrides)
        except ValueError as error:
            raise UsageError(str(error)) from None


@dataclass(frozen=True)
class Command:
    """One TEST.

    Arguments:
        name: what TEST= selects; the name of its module, too.
        summary: what it checks, in one line.
        options: its variables, in the order in which help lists them; LANES follows SIM by itself.
        run: does it and returns the report, whose `exit_status` becomes the command's; a command that is not a TEST
            returns its exit status instead.
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
        """Return the command that runs it with these settings again, but for those that change.

        Arguments:
            settings: those that it ran with.
            changed: other values, by the options' names.
        """
        values = {**settings.values, **changed}
        words = [f"{one.name}={values[one.name]}" for one in self.options if values[one.name] != one.default]
        return " ".join(["make sim", f"TEST={self.name}", *words])

    def settings(self, assignments: Iterable[str] = (), **values: object) -> Settings:
        """Return settings from NAME=VALUE texts and from values already parsed, defaults for the rest.

        Raises:
            UsageError: for a text that is no assignment, a name that is not an option, or a value that is not valid.
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
    """Return a variable that is an integer of a range; None: where it is not given something else decides."""
    return Option(name=name, type=int, default=default, help=help, minimum=minimum, maximum=maximum)


def switch(name: str, default: int, help: str) -> Option:
    """Return a variable that is 0 or 1."""
    return integer(name, default, help, 0, 1)


def choice(name: str, default: str | None, help: str, choices: Iterable[str] = ()) -> Option:
    """Return a variable that is one of some words, or any; None: where it is not given something else decides."""
    return Option(name=name, type=str, default=default, help=help, choices=tuple(choices))


def configuration_options(default_preset: str) -> tuple[Option, ...]:
    """Return the options that choose the machine: PRESET, and one to override each of its parameters."""
    overrides = (
        integer(name.upper(), None, f"{name.replace('_', ' ')}, instead of the preset's", low, high)
        for name, (low, high) in Config.RANGES.items()
    )
    return choice("PRESET", default_preset, "named configuration", PRESETS), *overrides


SEED = integer("SEED", 1, "seed of the random data", 0, 2**32 - 1)
SIM = choice("SIM", SIMULATORS[0], "simulator", SIMULATORS)
LANES_OPTION = choice(
    "LANES",
    None,
    "how Verilator's designs evaluate what there is many times, else as the environment's LANES, or vector; "
    "a waveform is recorded of scalar ones",
    WAYS,
)
WAVES = switch("WAVES", 0, "1 records a waveform")
DEPTH = integer("DEPTH", 3, "levels of the hierarchy in the waveform, 0 for all", 0, 99)
PROFILE = integer("PROFILE", None, "1 writes a profile of what runs on the core, or by its timing model", 0, 1)
RECORDED = (SIM, WAVES, DEPTH)
"""Who simulates, and what is recorded."""


def dtype_option(choices: Iterable[str], default: str = "bf16") -> Option:
    """Return the option that chooses a number format among those the bench takes."""
    return choice("DTYPE", default, "number format of the operands", choices)
