"""Untimed interpreter of lists of collectives, one list per core.

Each core executes its list in order. A collective begins when every core of its group has reached it, and ends on all
of them at the same time. On the machine, a collective may end on one rank before another rank begins it; a program that
depends on this deadlocks here.
"""

from functools import lru_cache

import numpy as np

from neuroncore_rtl.golden.collective.errors import CollectiveError, Deadlock
from neuroncore_rtl.golden.collective.group import execute_group
from neuroncore_rtl.spec.isa import Cause
from neuroncore_rtl.spec.isa.collective import (
    SIGNATURE_FIELDS,
    Collective,
    CollectiveKind,
    collective_violation,
    disagreement,
    signature,
)
from neuroncore_rtl.spec.link import MAX_CORES

__all__ = ["compare_signatures", "execute_lists", "partners_of"]

_PLACES = {name: place for place, (name, _) in enumerate(SIGNATURE_FIELDS)}


def execute_lists(
    instructions: dict[int, list[Collective]], memories: dict[int, np.ndarray], cores: int = MAX_CORES
) -> None:
    """Execute the list of each core, on its memory, uint8 [bytes]; the instance has `cores` cores.

    Raises:
        CollectiveError: if an instruction is illegal, or two ranks disagree. Earlier collectives are complete.
        Deadlock: if no core can proceed.
    """
    state = _State(instructions, cores)
    while state.unfinished():
        together = next(filter(None, map(state.together, state.unfinished())), None)
        if together is None:
            raise state.deadlock()
        execute_group([state.due(core) for core in together], memories)
        state.retire(together)


class _State:
    def __init__(self, instructions: dict[int, list[Collective]], cores: int):
        self.instructions = instructions
        self.cores = cores
        self.done = dict.fromkeys(instructions, 0)
        for core in self.unfinished():
            self._judge(core)

    def unfinished(self) -> list[int]:
        return [core for core in sorted(self.done) if self.done[core] < len(self.instructions[core])]

    def current(self, core: int) -> Collective | None:
        done = self.done.get(core, 0)
        listed = self.instructions.get(core, [])
        return listed[done] if done < len(listed) else None

    def due(self, core: int) -> Collective:
        instruction = self.current(core)
        assert instruction is not None
        return instruction

    def retire(self, cores: list[int]) -> None:
        for core in cores:
            self.done[core] += 1
        for core in cores:
            self._judge(core)

    def _judge(self, core: int) -> None:
        instruction = self.current(core)
        if instruction is None:
            return
        broken = collective_violation(instruction.fields(), core, self.cores)
        if broken is not None:
            rule, message = broken
            raise CollectiveError(f"core {core}: {instruction.name}: {message} (rule {rule.name})", core, rule)

    def together(self, core: int) -> list[int] | None:
        """Return the cores that execute this core's collective, in order of ranks; None until all have reached it."""
        partners = partners_of(self.due(core))
        at = {partner: self.current(partner) for partner in partners}
        there = [partner for partner in partners if at[partner] and core in partners_of(at[partner])]
        for partner in there:
            compare_signatures(self.due(core), self.due(partner))
        return partners if len(there) == len(partners) else None

    def deadlock(self) -> Deadlock:
        waiting, lines = {}, []
        for core in self.unfinished():
            instruction = self.due(core)
            missing = [
                p for p in partners_of(instruction) if not self.current(p) or core not in partners_of(self.current(p))
            ]
            waiting[core] = tuple(missing)
            where = f"core {core} at {instruction.kind.name}, number {self.done[core]}, "
            lines.append(where + "waits for " + (", ".join(map(self._where, missing)) or "waiting cores"))
        return Deadlock("deadlock: " + "; ".join(lines), waiting)

    def _where(self, core: int) -> str:
        instruction = self.current(core)
        return f"core {core} (at {instruction.kind.name if instruction else 'its end'})"


@lru_cache
def partners_of(instruction: Collective) -> list[int]:
    """Return the cores, in order of ranks, that must reach a collective before the collective can begin."""
    cores = list(instruction.group.cores)
    if instruction.kind in (CollectiveKind.SEND, CollectiveKind.RECEIVE):
        return [cores[rank] for rank in sorted((instruction.rank, instruction.root))]
    return cores


def compare_signatures(one: Collective, other: Collective) -> None:
    """Raise CollectiveError if two ranks that wait for each other have reached different collectives."""
    if one is other:
        return
    place = f"cores {one.core} and {other.core} must agree on"
    field = disagreement(signature(one.fields()), signature(other.fields()))
    if field is None:
        return
    detail = other.core | (_PLACES[field] + 1) << 8
    values = f"{field}, not {one.fields()[field]} and {other.fields()[field]}"
    if field == "kind" and one.kind == other.kind:
        values = f"the sender: both are at {one.kind.name}"
    raise CollectiveError(f"{place} {values}", one.core, Cause.DISAGREE, detail)
