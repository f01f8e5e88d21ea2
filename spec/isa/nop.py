"""NOP, which every queue executes itself."""

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
    """No operation; any queue accepts it.

    It retires as soon as its waits are satisfied and its updates are done, even if earlier records have not finished.
    Only then does the queue read the next record.
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
        """Return no fields."""
        return {}

    @classmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return a NOP."""
        return cls()

    @classmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return None."""
        return None

    @classmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return no fields."""
        return frozenset()
