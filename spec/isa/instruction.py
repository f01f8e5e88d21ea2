"""Protocol of instructions: each class describes itself to encoders, checkers, schedulers and reports."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.access import Storage
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.rule import Broken

__all__ = ["Context", "Instruction", "Move"]

Move = Callable[[Storage, int], int]
"""Function from an on-chip storage and a byte address to another byte address."""


@dataclass(frozen=True)
class Context:
    """Context in which an instruction is checked.

    Arguments:
        config: the machine's parameters.
        core: index of the executing core.
        loaded: columns that the previous LoadStationary filled, and whether they are INT8; None without one.
    """

    config: Config
    core: int = 0
    loaded: tuple[range, bool] | None = None


class Instruction(ABC):
    """Instruction of a record; a frozen dataclass.

    Only the vector and scalar engine's instruction needs `config` for encoding and decoding, because its tensors start
    at quadrants of the machine's partitions.
    """

    layout: ClassVar[Layout]
    """Fields, from the least significant bit up."""

    signed: ClassVar[frozenset[str]] = frozenset()
    """Fields in two's complement."""

    named_by: ClassVar[tuple[str, type[enum.IntEnum]] | None] = None
    """Field with the code that names the instruction, and the enumeration of codes; None if the class has one name."""

    lane: ClassVar[int | None] = 0
    """In-order stream of its queue (`spec.isa.engine.LANES`), by index; None if its queue executes it."""

    overlap: bool | None = None
    """True if it may read while earlier instructions of its engine still write; None without such a field."""

    stochastic: bool = False
    """True if its results are rounded stochastically."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """Executing engine."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the instruction; in lower case, its mnemonic."""

    @property
    def summary(self) -> str:
        """Short description for timelines."""
        return self.name.lower()

    @property
    def details(self) -> dict[str, object]:
        """Further values for timelines, by name."""
        return {}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the operands, such as partitions and elements."""
        return ()

    @property
    def columns(self) -> int:
        """Number of columns that move through the array, one per cycle."""
        return 0

    @property
    def transfers(self) -> tuple[tuple[str, Storage, int], ...]:
        """Transfers of a copy: direction ("read" or "write"), storage and bytes of each."""
        return ()

    @property
    @abstractmethod
    def reads(self) -> tuple[Region, ...]:
        """Regions that the instruction reads: sources, scalars and row numbers."""

    @property
    @abstractmethod
    def writes(self) -> tuple[Region, ...]:
        """Regions that the instruction writes; an accumulator is listed only here."""

    @property
    @abstractmethod
    def in_turn(self) -> bool:
        """True if the engine begins the instruction only after all earlier ones of its lane."""

    @property
    def continues(self) -> bool:
        """True if the instruction uses the engine's state after the previous instruction."""
        return False

    def may_overwrite(self, written: Region, other: Region) -> bool:
        """Return whether `written` may overlap another of its regions; dst may, element for element."""
        return written.name == "dst" and written.coincides(other)

    def after(self, context: Context) -> Context:
        """Return the context in which the next instruction is checked."""
        return context

    def shortened(self) -> Self:
        """Return the instruction without outer dimensions of one element and step 0."""
        return self

    def moved(self, place: Move) -> Self:
        """Return a copy of the instruction with other addresses on chip."""
        return self

    def drawn(self, stream: int) -> Self:
        """Return a copy that rounds stochastically by the words of a stream, if it can and its results may round."""
        return self

    def overlapping(self, overlap: bool) -> Self:
        """Return a copy with this value of the field `overlap`."""
        return self._with(overlap=overlap)

    def _moved(self, place: Move, **parts: object) -> Self:
        known = vars(self)
        for name in ("reads", "writes"):
            if name in known:
                parts[name] = tuple(region.moved(place) for region in known[name])
        return self._with(**parts)

    def _with(self, **parts: object) -> Self:
        # Programs move every instruction; `dataclasses.replace` and recomputed regions take several times as long.
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **parts)
        return other

    @abstractmethod
    def fields(self, config: Config | None = None) -> dict[str, int]:
        """Return the value of every field; raise ValueError if one has no encoding."""

    def encode(self, config: Config | None = None) -> int:
        """Return the instruction word; raise ValueError if a value does not fit."""
        return self._packed(self.fields(config))

    def _packed(self, values: dict[str, int]) -> int:
        return pack(self.layout, values, self.name.lower(), self.signed)

    @classmethod
    def pack(cls, values: dict[str, int]) -> int:
        """Return the instruction word; raise ValueError if a value does not fit its field."""
        return pack(cls.layout, values, signed=cls.signed)

    @classmethod
    def unpack(cls, word: int) -> dict[str, int]:
        """Return the fields of an instruction word."""
        return unpack(cls.layout, word, cls.signed)

    @classmethod
    @abstractmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return the instruction, with defaults of unused operands; raise ValueError if a used code is unknown."""

    @classmethod
    @abstractmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return the lowest rule that the fields break on an engine, with a message, or None."""

    @classmethod
    @abstractmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the fields that a legal instruction does not use."""

    def check(self, context: Context) -> None:
        """Raise ValueError unless the instruction is legal in a context."""
        values = self.fields(context.config)
        self._packed(values)
        broken = self.violation(self.engine, values, context)
        if broken is not None:
            rule, message = broken
            raise ValueError(f"{self.name}: {message} (rule {rule.name})")
