"""Variables of TESTs: options and their values, commands, and shared options."""

import hashlib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from neuroncore_rtl.kernels.program.program import ORDERS, Program
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.shell import shell_command
from neuroncore_rtl.run.sim.packages import require_clone, require_packages
from neuroncore_rtl.run.sim.simulation import SIMULATORS
from neuroncore_rtl.run.sim.vectors import MOST_THREADS, WAYS
from neuroncore_rtl.spec.config import PRESETS, Config, preset_named
from neuroncore_rtl.spec.parameters import parameters

__all__ = [
    "BOARD_OPTIONS", "HBM_OPTIONS", "LANES_OPTION", "LATENCY", "ORDER", "PROFILE", "RECORDED", "RUN_OPTIONS", "SEED",
    "SIM", "STALL", "THREADS_OPTION", "TILE_OPTION", "WAVES", "Command", "Option", "Settings", "UsageError",
    "check_room", "choice", "configuration_options", "core_options", "dtype_option", "integer", "later", "machine_of",
    "refusals", "switch", "unknown",
]  # fmt: skip


class UsageError(ValueError):
    """An invalid request; the message names the rule."""


LISTED = 100
"""Characters of a list of names that an error shows even if it suggests a similar name."""


def unknown(what: str, name: str, names: Iterable[str]) -> UsageError:
    """Return the error for a name that is not in `names`: similar names, whatever their case, or all names."""
    by_lower_case = {one.lower(): one for one in names}
    similar = [by_lower_case[one] for one in get_close_matches(name.lower(), by_lower_case, cutoff=0.66)]
    question = f"; did you mean {' or '.join(similar)}?" if similar else ""
    listed = ", ".join(by_lower_case.values())
    rule = "an existing one" if similar and len(listed) > LISTED else f"one of {listed}"
    return UsageError(f"{what} must be {rule}, not {name!r}{question}")


@contextmanager
def refusals() -> Iterator[None]:
    """Convert each ValueError that a kernel raises in this context to a UsageError."""
    try:
        yield
    except ValueError as refusal:
        raise UsageError(str(refusal)) from refusal


@dataclass(frozen=True, kw_only=True)
class Option:
    """A variable of a TEST: NAME=VALUE for make, --name VALUE on the command line.

    Arguments:
        type: int, str or Path.
        default: None: no value, or one derived from other variables.
        choices: valid values of a str; empty: any.
        minimum, maximum: range of an int.
    """

    name: str
    type: type
    default: int | str | Path | None
    help: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None

    def parse(self, text: str) -> int | str | Path:
        """Return the value of `text`; UsageError, with the rule, if it is not valid."""
        if self.type is int:
            most = float("inf") if self.maximum is None else self.maximum
            # int() would also accept underscores, blanks and the digits of other scripts.
            if not re.fullmatch(r"-?[0-9]{1,18}", text) or not self.minimum <= int(text) <= most:
                raise UsageError(f"{self.name} must be {self._range()}, not {text!r}")
            return int(text)
        if self.choices and text not in self.choices:
            raise unknown(self.name, text, self.choices)
        if self.type is Path and not Path(text).is_file():
            raise UsageError(f"{self.name} must be an existing file, not {text!r}")
        return self.type(text)

    def _range(self) -> str:
        most = self.maximum
        return f"an integer of at least {self.minimum}" if most is None else f"an integer from {self.minimum} to {most}"

    def describe(self) -> str:
        """Return the help, valid values and default."""
        valid = ", ".join(self.choices) if self.choices else self._range() if self.type is int else ""
        default = "" if self.default is None else f"default {self.default}"
        details = "; ".join(part for part in (valid, default) if part)
        return f"{self.help} ({details})" if details else self.help


LONGEST = 100
"""Characters after which a label is cut."""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _word(value: object) -> str:
    """Return a value as a word for names of files, equal only for equal values: a changed text or a path has a hash."""
    if isinstance(value, Path):
        return f"{re.sub(r'[^A-Za-z0-9_.]+', '_', value.stem)}_{_hash(str(value.absolute()))}"
    word = re.sub(r"[^A-Za-z0-9_.]+", "_", str(value))
    return word if word == str(value) else f"{word}_{_hash(str(value))}"


@dataclass(frozen=True)
class Settings:
    """Values and defaults of options, by their names; the option MAC_LATENCY is the attribute `mac_latency`."""

    values: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name.upper()]
        except KeyError:
            raise AttributeError(f"this command has no option {name.upper()}") from None

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the values of those of the named variables that exist."""
        return {name: self.values[name] for name in names if name in self.values}

    @property
    def non_defaults(self) -> dict[str, Any]:
        """Values that differ from their defaults."""
        return {name: value for name, value in self.values.items() if value != self.defaults.get(name, value)}

    @property
    def label(self) -> str:
        """The values that differ from their defaults, such as "m13-k17-stall30", for names of files."""
        label = "-".join(f"{name.lower()}{_word(value)}" for name, value in self.non_defaults.items())
        return label if len(label) <= LONGEST else f"{label[:LONGEST].strip('-')}-{_hash(label)}"

    def file_name(self, test: str, end: str = "") -> str:
        """Return the name of a run's files; `end` distinguishes the jobs of a TEST."""
        return "-".join(filter(None, (test, self.label, end)))

    @property
    def config(self) -> Config:
        """The preset with the given parameters; UsageError if they contradict each other."""
        return machine_of(self.preset, {name: self.values.get(name.upper()) for name in Config.RANGES})[0]


@dataclass(frozen=True)
class Command:
    """A TEST, or another command; LANES is inserted after SIM; `run` returns a report or an exit status.

    `given` has values that the command's caller did not have to give; the options keep their defaults.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    run: Callable[[Settings], Report | int]
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if SIM in self.options and LANES_OPTION not in self.options:
            at = self.options.index(SIM) + 1
            options = *self.options[:at], LANES_OPTION, THREADS_OPTION, *self.options[at:]
            object.__setattr__(self, "options", options)

    def command(self, settings: Settings, **changed: object) -> str:
        """Return the shell command that repeats a run with these settings, except the values in `changed`."""
        values = {**settings.values, **changed}
        words = [f"{one.name}={values[one.name]}" for one in self.options if values[one.name] != one.default]
        return shell_command("sim", self.name, *words)

    def settings(self, assignments: Iterable[str] = (), **values: object) -> Settings:
        """Return settings from NAME=VALUE texts, parsed values and defaults; UsageError for an invalid text."""
        options = {option.name: option for option in self.options}
        defaults = {name: option.default for name, option in options.items()}
        texts: dict[str, str] = {}
        for assignment in assignments:
            name, equals, text = assignment.partition("=")
            if not equals:
                raise UsageError(f"a variable is given as NAME=VALUE, not {assignment!r}")
            if name not in options:
                raise unknown(f"a variable of {self.name}", name, options)
            if name in texts:
                raise UsageError(f"{name} must be given once, not as {texts[name]!r} and {text!r}")
            texts[name] = text
        parsed = {name: options[name].parse(text) for name, text in texts.items()}
        return Settings({**defaults, **self.given, **values, **parsed}, defaults)


def later(module: str, name: str, *groups: str, clone: str = "") -> Callable[[Settings], object]:
    """Return a function of a module that is imported at the call, after the packages of `groups` are installed.

    `clone` names a command that an installed package lacks, because it needs documents or tests.
    """

    def call(settings: Settings) -> object:
        if clone:
            require_clone(clone)
        require_packages(*groups)
        return getattr(importlib.import_module(f"neuroncore_rtl.{module}"), name)(settings)

    return call


def integer(name: str, default: int | None, help: str, minimum: int, maximum: int | None = None) -> Option:
    """Return an integer variable."""
    return Option(name=name, type=int, default=default, help=help, minimum=minimum, maximum=maximum)


def switch(name: str, default: int, help: str) -> Option:
    """Return a variable that is 0 or 1."""
    return integer(name, default, help, 0, 1)


def machine_of(preset: str | Config, variables: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return a machine and the variables that are no parameters of it; UsageError if a parameter is not valid.

    `preset` is a name or a machine; `variables`, in small letters, replace its parameters.
    """
    if not isinstance(preset, str | Config):
        raise UsageError(f"PRESET must be one of {', '.join(PRESETS)}, or a Config, not {preset!r}")
    parameters = {name: value for name, value in variables.items() if name in Config.RANGES}
    try:
        base = preset_named(preset) if isinstance(preset, str) else preset
        machine = base.with_overrides(**parameters)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    return machine, {name: value for name, value in variables.items() if name not in parameters}


def choice(name: str, default: str | None, help: str, choices: Iterable[str] = ()) -> Option:
    """Return a text variable; without `choices`, for any text."""
    return Option(name=name, type=str, default=default, help=help, choices=tuple(choices))


def configuration_options(default_preset: str) -> tuple[Option, ...]:
    """Return PRESET and an option for each of its parameters."""
    overrides = (
        integer(one.name.upper(), None, one.sentence.partition(";")[0], one.low, one.high)
        for one in parameters().values()
    )
    meaning = "named configuration; each variable of a parameter overrides it"
    return choice("PRESET", default_preset, meaning, PRESETS), *overrides


SEED = integer("SEED", 1, "seed of the random data", 0, 2**32 - 1)
SIM = choice("SIM", SIMULATORS[0], "simulator", SIMULATORS)
_LANES = """simulation of replicated modules in Verilator, as vectors or one by one; unless given, the environment's \
LANES, or vector; scalar with WAVES=1"""
LANES_OPTION = choice("LANES", None, _LANES, WAYS)
_THREADS = """threads that step the replicated modules; unless given, the environment's THREADS, or as many as pay for \
the design"""
THREADS_OPTION = integer("THREADS", None, _THREADS, 1, MOST_THREADS)
WAVES = switch("WAVES", 0, "1 records a waveform")
DEPTH = integer("DEPTH", 3, "levels of the hierarchy in the waveform, 0 for all", 0, 99)
PROFILE = integer("PROFILE", None, "1 writes a profile of a run on the core or on its timing model", 0, 1)
RECORDED = (SIM, WAVES, DEPTH)
"""Variables for the simulator and the waveform of a run."""

_STALL = (
    "rate, in 256ths of the cycles, of random pauses on every stream and memory port that the harness drives: "
    "tests the machine under backpressure, costs cycles"
)
STALL = integer("STALL", 0, _STALL, 0, 240)
_LATENCY = (
    "cycles from an HBM address to its data, a property of the memory: each DMA engine hides as many as it buffers "
    "beats (DMA_BEATS), more delay the engines"
)
LATENCY = integer("LATENCY", 64, _LATENCY, 1, 2000)
_BANDWIDTH = (
    "most bytes per cycle of HBM, reads and writes together, a property of the memory; "
    "0 for HBM_RATE, and without one for the width of its ports, HBM_PORTS * HBM_BYTES each way"
)
BANDWIDTH = integer("BANDWIDTH", 0, _BANDWIDTH, 0, 1024)
HBM_OPTIONS = (LATENCY, BANDWIDTH, STALL)
"""Behaviour of HBM."""

RUN_OPTIONS = (SEED, *HBM_OPTIONS, *RECORDED, PROFILE)
"""Variables of a run."""

BOARD_OPTIONS = (
    choice("PORT", None, "serial port of the board, such as /dev/ttyUSB0; a simulated board unless given"),
    integer("BAUD", 1_000_000, "baud rate of the port, as in the bitstream", 1, 12_000_000),
)
"""For TARGET=board."""

_ORDER = (
    "instructions of each queue in program order, or scheduled to keep the engines busy: "
    "usually fewer cycles, a longer preparation"
)
ORDER = choice("ORDER", Program.order, _ORDER, ORDERS)
_TILE = (
    "rows and columns of the array that kernels use, all unless given: the same TILE gives the same bits on every "
    "PRESET, and a smaller one than the array costs cycles"
)
TILE_OPTION = integer("TILE", None, _TILE, 1, 128)


def dtype_option(choices: Iterable[str]) -> Option:
    """Return DTYPE, the number format of operands."""
    return choice("DTYPE", "bf16", "number format of the operands", choices)


def core_options(target: str, engine: str | None, preset: str) -> tuple[Option, ...]:
    """Return further variables of a TEST; `target` and `preset` are the defaults of TARGET and PRESET.

    `engine` names the engine that the TEST can also run without the core; None: no such engine.
    """
    alone = f"{engine} alone, where HBM plays no part, or " if engine else ""
    where = f"the whole core, or {alone}the core's timing model, where no RTL runs"
    target_option = choice("TARGET", target, where, ("core", "engine", "model") if engine else ("core", "model"))
    return target_option, *configuration_options(preset), ORDER, *RUN_OPTIONS


HBM_ROOM = 1 << 29
"""Most bytes of HBM in a simulation, which needs host memory for RTL and golden, and as text."""


def check_room(size: int) -> None:
    """Raise UsageError if tensors of `size` bytes exceed the HBM of a simulation; call it before creating them."""
    if size > HBM_ROOM:
        raise UsageError(f"tensors in HBM must have at most {HBM_ROOM:,} bytes to be simulated, not {size:,}")
