"""Sweep specification: a TOML file with a TEST and lists of values of its variables.

    test = "matmul"             # any TEST of make sim
    seeds = 3                   # SEED=1, 2 and 3
    measures = ["busy"]         # numbers of the report to show besides cycles and utilisation
    baseline = {STALL = 0}      # show ratios to the run that differs in this; or "first": to the first run

    [settings]                  # the same in all runs
    PRESET = "small"

    [sweep]                     # all combinations
    STALL = [0, 40]
    "M K N" = [16, 64, [16, 64, 128]]   # together: all 16, all 64, or one value each

Several sets of combinations are blocks `[[sweep]]`, each with an optional `test`. A value that is not a list stands
for a list of one. All runs are checked by the rules of their TEST before the first one starts.
"""

import itertools
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neuroncore_rtl.run.settings import SEED, Command, Settings, UsageError, unknown

__all__ = ["MOST", "Point", "Sweep", "sweep_of"]

MOST = 100_000
KEYS = ("test", "seeds", "settings", "sweep", "measures", "baseline")
Values = Mapping[str, object]


@dataclass(frozen=True)
class Point:
    """One run of a sweep: a TEST with all its settings; `swept` names the variables with several values."""

    test: str
    settings: Settings
    swept: tuple[str, ...]

    @property
    def assignments(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.settings.non_defaults.items()]


@dataclass(frozen=True)
class Sweep:
    """Content of a sweep file.

    Arguments:
        points: the distinct runs, the last list varying fastest.
        measures: numbers to show; empty: the usual ones. "loss.sr" includes all numbers below that heading.
        baselines: by TEST, the values that distinguish the runs to which others are compared; empty: no comparison.
    """

    points: list[Point]
    measures: tuple[str, ...] = ()
    baselines: Mapping[str, Values] = field(default_factory=dict)


def sweep_of(path: Path, command_named: Callable[[str], Command]) -> Sweep:
    """Return the content of a sweep file; `command_named` returns a TEST."""
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"SPEC must be a file of TOML; {path}: {error}") from None
    with _errors_at(str(path)):
        found = list(_points(spec, command_named))
        points = list({(point.test, *point.assignments): point for point in found}.values())
        baseline = spec.get("baseline")
        return Sweep(points, _measures(spec), {} if baseline is None else _baselines(baseline, points, command_named))


def _measures(spec: Values) -> tuple[str, ...]:
    names = spec.get("measures", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f'measures must be a list of names, such as ["cycles", "accuracy.sr"], not {names!r}')
    return tuple(names)


def _baselines(baseline: object, points: list[Point], command_named: Callable[[str], Command]) -> dict[str, Values]:
    """Return the values of the baseline by TEST, without TESTs that lack its variables."""
    if baseline == "first":
        firsts = {point.test: point for point in reversed(points)}
        return {test: {name: one.settings.values[name] for name in one.swept} for test, one in firsts.items()}
    if not isinstance(baseline, dict) or not baseline:
        raise UsageError(f'baseline must be "first" or values of variables, such as {{STALL = 0}}, not {baseline!r}')
    parts = [part for key, value in baseline.items() for part in _axis(key, [value], "baseline")]
    texts = {name: value for part in parts for name, value in part.items()}
    found = {}
    for test in dict.fromkeys(point.test for point in points):
        own = [point.settings.values for point in points if point.test == test]
        if texts.keys() <= own[0].keys():
            parsed = command_named(test).settings([f"{name}={value}" for name, value in texts.items()])
            values = {name: parsed.values[name] for name in texts}
            if any(values.items() <= one.items() for one in own):
                found[test] = values
    if not found:
        said = " ".join(f"{name}={value}" for name, value in texts.items())
        raise UsageError(f"baseline must be a run of the sweep, not {said}")
    return found


@contextmanager
def _errors_at(place: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _points(spec: Values, command_named: Callable[[str], Command]) -> Iterator[Point]:
    for key in spec:
        if key not in KEYS:
            raise unknown("a key", key, KEYS)
    settings, blocks = spec.get("settings", {}), spec.get("sweep", {})
    if not isinstance(settings, dict):
        raise UsageError(f"settings must be a table, not {settings!r}")
    blocks = blocks if isinstance(blocks, list) else [blocks]
    for number, block in enumerate(blocks, 1):
        where = "sweep" if len(blocks) == 1 else f"sweep {number}"
        if not isinstance(block, dict):
            raise UsageError(f"{where} must be a table, not {block!r}")
        lists = {name: values for name, values in block.items() if name != "test"}
        test = block.get("test", spec.get("test"))
        if not isinstance(test, str):
            raise UsageError(f"test must be the name of a TEST in {where} or at the top, not {test!r}")
        with _errors_at(where):
            bench = command_named(test)
        if (seeds := spec.get("seeds")) is not None:
            if any(SEED.name in key.split() for key in lists):
                raise UsageError(f"{where}, {SEED.name}: must not be a list beside seeds")
            lists[SEED.name] = _seeds(seeds)
        yield from _block(bench, settings, lists, where)


def _seeds(count: object) -> list[int]:
    if type(count) is not int or not 1 <= count <= MOST:
        raise UsageError(f"seeds must be an integer from 1 to {MOST}, not {count!r}")
    return list(range(1, count + 1))


def _block(bench: Command, settings: Values, lists: Values, where: str) -> Iterator[Point]:
    axes = [_axis(key, values, where) for key, values in lists.items()]
    names = [name for axis in axes for name in axis[0]]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UsageError(f"{where}, {twice[0]}: must be given once, not {names.count(twice[0])} times")
    count = math.prod(map(len, axes))
    if count > MOST:
        raise UsageError(f"{where} must have at most {MOST:,} combinations, not {count:,}")
    swept = tuple(name for axis in axes if len(axis) > 1 for name in axis[0])
    for combination in itertools.product(*axes):
        chosen = dict(settings) | {name: value for part in combination for name, value in part.items()}
        yield Point(bench.name, _checked(bench, chosen, set(settings), where), swept)


def _axis(key: str, values: object, where: str) -> list[dict[str, object]]:
    names, values = key.split(), values if isinstance(values, list) else [values]
    if not values or not names:
        raise UsageError(f"{where}, {key}: a list must have a value")
    axis = []
    for value in values:
        parts = value if isinstance(value, list) else [value] * len(names)
        if len(parts) != len(names):
            raise UsageError(f"{where}, {key}: {value!r} must have {len(names)} values, not {len(parts)}")
        axis.append(dict(zip(names, parts, strict=True)))
    return axis


def _checked(bench: Command, chosen: Values, fixed: set[str], where: str) -> Settings:
    """Return the settings of a run after checking each variable and the machine that they describe."""
    for name, value in chosen.items():
        place = "settings" if name in fixed else where
        if not isinstance(value, str | int | float):
            raise UsageError(f"{place}, {name}: a value must be text or a number, not {value!r}")
        with _errors_at(f"{place}, {name}"):
            bench.settings([f"{name}={value}"])
    settings = bench.settings([f"{name}={value}" for name, value in chosen.items()])
    if "PRESET" in settings.values and "ROWS" in settings.values:
        with _errors_at(where):
            settings.config  # noqa: B018
    return settings
