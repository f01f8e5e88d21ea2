"""Test case of a soak: a program, its machine, and the disturbances.

A case is self-contained: a file holds all of it, a failing case can be reduced, and it runs again after the random
generators have changed.
"""

import base64
import json
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import ClassVar, Self, get_args

import numpy as np

from neuroncore_rtl.kernels.text.assembly import parse_record, record_text
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.tb.tests.soak import machines

__all__ = [
    "Case", "CaseKind", "ConfigCase", "ListedCase", "Stored", "Verdict", "kind_of", "smaller_sizes", "text_of",
    "verdict_of", "without",
]  # fmt: skip


class CaseKind:
    """Kinds of failure. A reduced case must fail with the original's kind; otherwise its defect may be another one."""

    NONE = ""
    BYTES = "bytes differ"
    HANG = "it does not end"
    ERROR = "an error is reported"
    RACE = "a race"
    OTHER = "what is executed differs"
    BROKEN_OFF = "the simulation breaks off"
    NOTHING = "nothing was compared"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Outcome of a case: kind of failure, number of compared bytes (RISC-V: instructions), cycles, failure messages."""

    kind: str
    compared: int
    cycles: int
    failures: tuple[str, ...] = ()


def kind_of(ending: Ending, failures: Collection[str], compared: int, mismatches: int) -> str:
    """Return the kind of a run's failure, from its ending, its failures other than wrong bytes, and its wrong bytes."""
    if ending in (Ending.LIMIT, Ending.STUCK, Ending.DEAD):
        return CaseKind.HANG
    if any("error" in failure for failure in failures):
        return CaseKind.ERROR
    if any(failure.partition(": ")[2].startswith("race") or failure.startswith("race") for failure in failures):
        return CaseKind.RACE
    if mismatches:
        return CaseKind.BYTES
    if failures:
        return CaseKind.OTHER
    return CaseKind.NONE if compared else CaseKind.NOTHING


def verdict_of(result: Result, ending: Ending, cycles: int) -> Verdict:
    """Return the verdict on a run of cores or engines with HBM."""
    kind = kind_of(ending, result.failures, result.compared, result.mismatches)
    messages = (*result.failures, *result.differences)
    return Verdict(kind=kind, compared=result.compared, cycles=cycles, failures=messages)


def text_of(instruction: isa.Instruction) -> str:
    """Return an instruction as a line of assembly."""
    return record_text(isa.Record(instruction=instruction))


class Stored:
    """Immutable dataclass that a file holds as JSON, one key per field."""

    def as_json(self) -> dict[str, object]:
        return {field.name: _packed(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> Self:
        return cls(**{field.name: _unpacked(found[field.name], field.type) for field in fields(cls)})

    def variants(self, **values: object) -> Iterator[Self]:
        """Yield a copy per value that differs from the field of that name, with only that field changed."""
        for name, value in values.items():
            if getattr(self, name) != value:
                yield replace(self, **{name: value})

    def with_item(self, name: str, number: int, item: object) -> Self:
        before = getattr(self, name)
        return replace(self, **{name: (*before[:number], item, *before[number + 1 :])})


class Case(Stored, ABC):
    """Program, machine and disturbances.

    Common fields of subclasses: `errors` is the share of disturbed frames; `stall` the cycles in 256 in which each
    stream or bus pauses; `garble` the seed of random unused bits of records, or None.

    Attributes:
        subject: name of the class in a file.
        machine: parameters of the RTL to build; None: the RTL has no parameters.
        size: number of instructions that can be removed.
    """

    subject: ClassVar[str]
    machine: Config | Instance | None

    @classmethod
    @abstractmethod
    def draw(cls, rng: np.random.Generator, machine: Config | Instance | None) -> Self:
        """Return a random case on a machine."""

    @classmethod
    @abstractmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Config | Instance | None:
        """Return a random machine."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def judge(self) -> Verdict:
        """Execute the case on the RTL and on golden; ValueError if it is illegal, SimulationFailed if the RTL fails."""

    @abstractmethod
    def without(self, numbers: Collection[int]) -> Self:
        """Return the case without the instructions with these indices; ValueError if the result is not legal."""

    def smaller(self, number: int) -> Iterator[Self]:
        yield from ()

    def calmer(self) -> Iterator[Self]:
        """Yield the case with fewer disturbances, on the same machine."""
        yield from ()

    def plainer(self) -> Iterator[Self]:
        """Yield the case on machines closer to the default; each needs a build."""
        yield from ()

    @abstractmethod
    def covers(self) -> Counter[str]:
        """Return the number of occurrences of each feature, `dimension:value`."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the program as text, one line per instruction."""

    @property
    def text(self) -> str:
        return json.dumps({"subject": self.subject, **self.as_json()})


class ListedCase(Case):
    """Case with all of its instructions in one tuple, `items`."""

    items: tuple

    @property
    def size(self) -> int:
        return len(self.items)

    def without(self, numbers: Collection[int]) -> Self:
        return replace(self, items=without(self.items, numbers))


class ConfigCase(Case):
    """Case on a single core or on one of its engines."""

    machine: Config

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Config:
        return machines.drawn_config(rng)

    def plainer(self) -> Iterator[Self]:
        return (replace(self, machine=config) for config in machines.plainer_configs(self.machine))


def without(items: tuple, numbers: Collection[int]) -> tuple:
    """Return the items except the items with the indices `numbers`."""
    return tuple(item for number, item in enumerate(items) if number not in numbers)


def smaller_sizes(size: int) -> list[int]:
    """Return 1 and the half of `size`, if smaller."""
    return sorted({1, size // 2} - {0, size}) if size else []


def _packed(value: object) -> object:
    match value:
        case np.ndarray():
            data = zlib.compress(np.ascontiguousarray(value).tobytes(), 9)
            return {"shape": list(value.shape), "zlib": base64.b64encode(data).decode()}
        case isa.Instruction():
            return text_of(value)
        case tuple():
            return [_packed(one) for one in value]
        case Stored():
            return value.as_json()
        case Config() | Hbm() | Instance():
            return asdict(value)
    return value


def _unpacked(value: object, kind: type) -> object:
    """Return the value from its JSON, made by `_packed`; `kind` is the type of the value's field."""
    if kind in _READERS:
        return _READERS[kind](value)
    if isinstance(value, str) and kind is not str:
        return parse_record(value).instruction
    if isinstance(value, list):
        return tuple(_unpacked(one, next(iter(get_args(kind)), kind)) for one in value)
    return kind.from_json(value) if isinstance(value, dict) else value


def _array_from(found: Mapping[str, object]) -> np.ndarray:
    data = zlib.decompress(base64.b64decode(found["zlib"]))
    return np.frombuffer(data, np.uint8).reshape(found["shape"]).copy()


_READERS = {
    np.ndarray: _array_from,
    Config: lambda found: Config(**found),
    Hbm: lambda found: Hbm(**{name: tuple(one) if isinstance(one, list) else one for name, one in found.items()}),
    Instance: lambda found: Instance(
        **{**found, "topology": Topology(found["topology"]), "core": Config(**found["core"])}
    ),
}
