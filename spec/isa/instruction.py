"""The protocol of instructions: what each says about itself, once, for all who encode, judge, order and show them."""

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
"""From a storage on chip and a byte address to another address."""


@dataclass(frozen=True)
class Context:
    """What an instruction is judged against, beside its own fields.

    Arguments:
        config: the machine's parameters.
        core: the one of its instance that executes it.
        loaded: the columns that the LoadStationary before it filled, and whether they are INT8; None if there was none.
    """

    config: Config
    core: int = 0
    loaded: tuple[range, bool] | None = None


class Instruction(ABC):
    """What a record can hold; a frozen dataclass of an engine's folder, listed in `spec.isa.registry`.

    Only the vector and the scalar engine's instruction needs `config` to be encoded and decoded: its tensors start at
    quadrants of the machine's partitions.
    """

    layout: ClassVar[Layout]
    """Name and width of each field, from the least significant bit up."""

    signed: ClassVar[frozenset[str]] = frozenset()
    """Fields in two's complement."""

    named_by: ClassVar[tuple[str, type[enum.IntEnum]] | None] = None
    """The field whose code is the instruction's name, and the codes; None if the type is."""

    lane: ClassVar[int | None] = 0
    """In which lane of its queue (`spec.isa.engine.LANES`) it completes. None: in none, as no engine takes it; it
    completes in its queue, before the queue looks at the next record."""

    overlap: bool | None = None
    """Whether it may start reading while earlier ones of its engine are still writing; None: that is not its to say."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """The engine that executes it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in reports; in small letters that of assembly."""

    @property
    def summary(self) -> str:
        """What it does in a few words, for timelines."""
        return self.name.lower()

    @property
    def details(self) -> dict[str, object]:
        """What timelines tell of it beside the summary."""
        return {}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of what it works on, such as partitions and elements; empty if it has none."""
        return ()

    @property
    def columns(self) -> int:
        """Columns that it moves through the array, one a cycle."""
        return 0

    @property
    def transfers(self) -> tuple[tuple[str, Storage, int], ...]:
        """What it copies: "read" or "write", the storage, and how many bytes."""
        return ()

    @property
    @abstractmethod
    def reads(self) -> tuple[Region, ...]:
        """The regions of its sources: tensors, scalars and row numbers in memory."""

    @property
    @abstractmethod
    def writes(self) -> tuple[Region, ...]:
        """The regions of its destination and of a reduction's result. What it accumulates to is here alone."""

    @property
    @abstractmethod
    def in_turn(self) -> bool:
        """Whether it begins only when all before it in its lane have completed."""

    @property
    def continues(self) -> bool:
        """Whether it uses what the instruction before it in its queue left in the engine, not in memory."""
        return False

    def may_overwrite(self, written: Region, other: Region) -> bool:
        """Return whether `written` may lie where another region of its own does: dst may, element for element.

        Of everything else the order of reading and writing is the engine's affair.
        """
        return written.name == "dst" and written.coincides(other)

    def after(self, context: Context) -> Context:
        """Return what the next instruction is judged against, once this one has been executed."""
        return context

    def shortened(self) -> Self:
        """Return an instruction of the same bits that has no more dimensions than it needs."""
        return self

    def moved(self, place: Move) -> Self:
        """Return the same on other addresses on chip.

        Arguments:
            place: from a storage, SBUF or PSUM, and a byte address there to another one.
        """
        return self

    def overlapping(self, overlap: bool) -> Self:
        """Return the same that may, or may not, start reading while earlier ones of its engine are still writing."""
        return self._with(overlap=overlap)

    def _moved(self, place: Move, **parts: object) -> Self:
        """Return the same with other parts, which are those on chip at other addresses."""
        known = vars(self)
        for name in ("reads", "writes"):
            if name in known:
                parts[name] = tuple(region.moved(place) for region in known[name])
        return self._with(**parts)

    def _with(self, **parts: object) -> Self:
        # Programs move every instruction: `dataclasses.replace`, and regions worked out anew, take several times as
        # long.
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **parts)
        return other

    @abstractmethod
    def fields(self, config: Config | None = None) -> dict[str, int]:
        """Return the value of every field.

        Raises:
            ValueError: if there is no field for what it says.
        """

    def encode(self, config: Config | None = None) -> int:
        """Return the instruction word.

        Raises:
            ValueError: as :meth:`fields`; or if a value does not fit its field.
        """
        return self._packed(self.fields(config))

    def _packed(self, values: dict[str, int]) -> int:
        return pack(self.layout, values, self.name.lower(), self.signed)

    @classmethod
    def pack(cls, values: dict[str, int]) -> int:
        """Return the word of the fields' values; ValueError names a field that its value does not fit."""
        return pack(cls.layout, values, signed=cls.signed)

    @classmethod
    def unpack(cls, word: int) -> dict[str, int]:
        """Return the value of every field of a word; what lies above it is ignored."""
        return unpack(cls.layout, word, cls.signed)

    @classmethod
    @abstractmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return the instruction of its fields, in its full form: all dimensions. What it does not use has its default.

        Raises:
            ValueError: if a field that it uses holds the code of nothing.
        """

    @classmethod
    @abstractmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return the lowest rule that fields break on an engine, and a message; None if they are legal there."""

    @classmethod
    @abstractmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the fields that mean nothing in a legal instruction."""

    def check(self, context: Context) -> None:
        """Refuse what is not legal, and what no word can say.

        Raises:
            ValueError: with a message that names the rule, the value and the place.
        """
        values = self.fields(context.config)
        self._packed(values)
        broken = self.violation(self.engine, values, context)
        if broken is not None:
            rule, message = broken
            raise ValueError(f"{self.name}: {message} (rule {rule.name})")
