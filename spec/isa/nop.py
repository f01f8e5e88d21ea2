"""The instruction that every queue executes itself: nothing."""

from dataclasses import dataclass
from typing import ClassVar, Self

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.instruction import Context, Instruction
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.rule import Broken

__all__ = ["Nop"]


@dataclass(frozen=True, kw_only=True)
class Nop(Instruction):
    """Touch nothing; any queue takes it, and no engine.

    It retires as soon as its waits hold and its updates are done, whether or not the records before it have finished;
    only then does the queue look at the next record. So it joins: a record that must wait for more than two semaphores
    has one before it, and one in any queue turns what many add up to into one semaphore.
    """

    layout = ()
    name: ClassVar[str] = "NOP"
    engine: ClassVar[Engine] = Engine.QUEUE
    lane = None
    overlap = True
    in_turn: ClassVar[bool] = False
    reads: ClassVar[tuple[Region, ...]] = ()
    writes: ClassVar[tuple[Region, ...]] = ()

    def fields(self, config: Config | None = None) -> dict[str, int]:
        """Return the value of every field: there is none."""
        return {}

    @classmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return the instruction."""
        return cls()

    @classmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return None: it breaks no rule."""
        return None

    @classmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the fields that mean nothing: there are none."""
        return frozenset()
