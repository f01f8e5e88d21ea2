"""What a soak runs: a program on a machine and what disturbs it, whole in itself, so that it can be kept as a file, cut
down when it fails, and run again when the generators that drew it have changed."""

import base64
import json
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np

from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance, Topology

__all__ = [
    "Case", "CaseKind", "ListedCase", "Verdict", "array_from", "array_json", "config_from", "hbm_from",
    "instance_from", "instance_json", "kind_of", "usual", "verdict_of", "without",
]  # fmt: skip


class CaseKind:
    """Why a case fails, roughly: what is cut down must go on failing so, or it may end as another fault."""

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
    """What came of a run.

    Arguments:
        kind: one of :class:`CaseKind`; `CaseKind.NONE` if it has passed.
        compared: bytes, or instructions of the controller, that were compared with golden.
        cycles: that it took.
        failures: what is wrong, a sentence each.
    """

    kind: str
    compared: int
    cycles: int
    failures: tuple[str, ...] = ()


def kind_of(ending: Ending, failures: Collection[str], compared: int, mismatches: int) -> str:
    """Return why a run has failed.

    Arguments:
        ending: how it ended.
        failures: what is wrong beside the bytes that differ, a sentence each.
        compared, mismatches: bytes.
    """
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
    """Return the verdict on cores or engines that have HBM; ending, cycles: of the run."""
    kind = kind_of(ending, result.failures, result.compared, result.mismatches)
    said = (*result.failures, *result.differences)
    return Verdict(kind=kind, compared=result.compared, cycles=cycles, failures=said)


class Case(ABC):
    """A program, its machine, and what disturbs both. Cases that agree in their machine share a build.

    Attributes:
        subject: names the kind of case, and the class in a file.
        machine: the parameters of what is built; None: there is one for all.
        size: instructions, as far as they can be left out.
    """

    subject: ClassVar[str]
    machine: Config | Instance | None

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def run(self) -> Verdict:
        """Run it on the RTL and on golden.

        Raises:
            ValueError: if there can be no such program.
            SimulationFailed: if the simulation breaks off.
        """

    @abstractmethod
    def without(self, numbers: Collection[int]) -> Self:
        """Return it without the instructions of these numbers.

        Raises:
            ValueError: if there can be no such program.
        """

    def smaller(self, number: int) -> Iterator[Self]:
        """Yield it with the instruction of a number made smaller, the smallest first; nothing if that is none such."""
        yield from ()

    def calmer(self) -> Iterator[Self]:
        """Yield it with less that disturbs it, each on the same machine."""
        yield from ()

    def plainer(self) -> Iterator[Self]:
        """Yield it on machines that are more as usual; each has to be built."""
        yield from ()

    @abstractmethod
    def covers(self) -> Counter[str]:
        """Return what it has, `dimension:value`, and how often."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the program for people, a line an instruction."""

    @abstractmethod
    def as_json(self) -> dict[str, object]:
        """Return what :meth:`from_json` makes it of."""

    @classmethod
    @abstractmethod
    def from_json(cls, found: Mapping[str, object]) -> Self:
        """Return the case of a file."""

    @property
    def text(self) -> str:
        """What a file of it has."""
        return json.dumps({"subject": self.subject, **self.as_json()})


class ListedCase(Case):
    """A case whose instructions are one list.

    Attributes:
        items: what can be left out.
    """

    items: tuple

    @property
    def size(self) -> int:
        return len(self.items)

    def without(self, numbers: Collection[int]) -> Self:
        return replace(self, items=without(self.items, numbers))


def without(items: tuple, numbers: Collection[int]) -> tuple:
    """Return items but those of some numbers."""
    return tuple(item for number, item in enumerate(items) if number not in numbers)


def array_json(array: np.ndarray) -> dict[str, object]:
    """Return bytes, uint8 of any shape, as JSON."""
    packed = zlib.compress(np.ascontiguousarray(array).tobytes(), 9)
    return {"shape": list(array.shape), "zlib": base64.b64encode(packed).decode()}


def array_from(found: Mapping[str, object]) -> np.ndarray:
    """Return the bytes of :func:`array_json`."""
    data = zlib.decompress(base64.b64decode(found["zlib"]))
    return np.frombuffer(data, np.uint8).reshape(found["shape"]).copy()


def config_from(found: Mapping[str, int]) -> Config:
    """Return the core's parameters of JSON."""
    return Config(**found)


def instance_json(instance: Instance) -> dict[str, object]:
    """Return an instance as JSON."""
    return asdict(instance) | {"topology": instance.topology.value}


def instance_from(found: Mapping[str, object]) -> Instance:
    """Return the instance of JSON."""
    return Instance(**{**found, "topology": Topology(found["topology"]), "core": config_from(found["core"])})


def hbm_from(found: Mapping[str, object]) -> Hbm:
    """Return the behaviour of JSON."""
    return Hbm(**{name: tuple(value) if isinstance(value, list) else value for name, value in found.items()})


def usual(config: Config) -> Iterator[Config]:
    """Yield configurations that differ from usual in less: first in nothing but rows and columns, then in one less."""
    defaults = {field.name: field.default for field in fields(Config) if field.name not in ("rows", "columns", "cores")}
    changed = {name: value for name, value in defaults.items() if getattr(config, name) != value}
    one_by_one = [{name: value} for name, value in changed.items()]
    for values in [changed, *one_by_one] if len(changed) > 1 else one_by_one:
        with suppress(ValueError):  # some only go together
            yield config.with_overrides(**values)
