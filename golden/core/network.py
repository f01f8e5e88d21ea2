"""Meeting point of collectives: each begins and ends when every core of its group has reached it."""

from collections.abc import Mapping

import numpy as np

from neuroncore_rtl.golden.collective import CollectiveError, execute_group
from neuroncore_rtl.golden.collective.system import compare_signatures, partners_of
from neuroncore_rtl.spec.isa import Cause
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["Network", "WaitingCores"]


class WaitingCores(Exception):
    """A collective cannot execute yet, because other cores of its group have not reached it."""


class Network:
    """Untimed network of an instance's cores, with the HBM of each: executes a collective when its group is complete.

    A collective that reaches beyond its core's memory fails as soon as the core reaches it. Two cores detect a
    disagreement only if one sends to the other on a channel on which the other expects its data; else they wait for
    each other. `woken` has the cores with a collective that has ended or failed; the caller removes them.
    """

    def __init__(self, memories: Mapping[int, np.ndarray]):
        self._memories = memories
        self._at: dict[int, Collective] = {}
        self._failed: set[int] = set()
        self._ended: dict[int, tuple[int, int] | None] = {}  # until `execute` has returned it
        self.woken: set[int] = set()

    def execute(self, core: int, instruction: Collective) -> tuple[int, int] | None:
        """Execute a core's collective; return cause and detail if it fails, None when it has ended.

        Raises WaitingCores if the group is incomplete; call again with the same legal instruction.
        """
        if core not in self._at and core not in self._ended:
            self._at[core] = instruction
            self._begin(core)
        if core not in self._ended:
            raise WaitingCores
        return self._ended.pop(core)

    def awaited(self, core: int) -> int | None:
        """Return a core that `core` waits for, or None; cores that have not reached the collective are preferred."""
        if core not in self._at:
            return None
        group = partners_of(self._at[core])
        place = group.index(core)
        others = [group[(place + way) % len(group)] for step in range(1, len(group)) for way in (step, -step)]
        missing = (other for other in others if other in self._failed or not self._is_there(core, other))
        return next(missing, others[0])

    def _is_there(self, core: int, other: int) -> bool:
        return other in self._at and core in partners_of(self._at[other])

    def _begin(self, core: int) -> None:
        own = self._at[core]
        if any(region.span[1] > len(self._memories[core]) for region in (*own.reads, *own.writes)):
            return self._fail(core, Cause.AXI, 0)
        for other in partners_of(own):
            if other != core and self._is_there(core, other) and _hear(own, self._at[other]):
                self._compare(core, other)
                self._compare(other, core)
        group = [other for other in partners_of(own) if self._is_there(core, other) and other not in self._failed]
        if group == partners_of(own) and all(_agree(own, self._at[other]) for other in group):
            execute_group([self._at[other] for other in group], self._memories)
            self._ended |= dict.fromkeys(group)
            self.woken.update(group)
            for other in group:
                del self._at[other]

    def _compare(self, core: int, other: int) -> None:
        try:
            compare_signatures(self._at[core], self._at[other])
        except CollectiveError as error:
            if error.cause is not None and core not in self._failed:
                self._fail(core, error.cause, error.detail)

    def _fail(self, core: int, cause: int, detail: int) -> None:
        """End a core's collective with an error; other cores still see that the core has reached the collective."""
        self._failed.add(core)
        self._ended[core] = cause, detail
        self.woken.add(core)


def _agree(one: Collective, other: Collective) -> bool:
    try:
        compare_signatures(one, other)
    except CollectiveError:
        return False
    return True


def _hear(one: Collective, other: Collective) -> bool:
    return any(
        a.core == sources and b.core == targets
        for a, b in ((one, other), (other, one))
        for targets, sources in zip(_neighbours(a), reversed(_neighbours(b)), strict=True)
    )


def _neighbours(instruction: Collective) -> tuple[int, ...]:
    """Return the cores to which both channels send; each channel receives from the other channel's core."""
    cores, rank = instruction.group.cores, instruction.rank
    if instruction.kind in (CollectiveKind.SEND, CollectiveKind.RECEIVE):
        return (cores[instruction.root],) * CHANNELS
    return cores[(rank + 1) % len(cores)], cores[rank - 1]
