"""Under which conditions the same gradients are added: what must change no bit of their sum."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import MAX_RANKS, Group
from neuroncore_rtl.spec.link import CORES_PER_CHIP
from neuroncore_rtl.tb.benches.collective_options import groups_of, instance_of, share_of
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.sim.settings import Settings, UsageError

__all__ = ["GIVEN", "Condition", "conditions_of"]

GIVEN = "as given"
"""The condition that the others are held against."""

PAUSES = 96
"""Cycles of 256 in which a slow HBM pauses more than the given one."""

DISTURBED = 0.005
"""Share of the frames that are disturbed where ranks come late, unless more are in any case."""

LATE = 1000
"""Cycles by which ranks come late, at most."""


@dataclass(frozen=True)
class Condition:
    """Where an all-reduce runs, and what befalls it.

    Arguments:
        instance: the instance.
        group: the core of every rank.
        behaviour: of HBM.
        errors: share of the frames that are disturbed.
        late: cycles that a rank may come late, at most.
    """

    instance: Instance
    group: Group
    behaviour: Hbm
    errors: float = 0.0
    late: int = 0


def conditions_of(settings: Settings) -> Mapping[str, Condition]:
    """Return the conditions by what tells them from each other; the first one is `GIVEN`.

    Raises:
        UsageError: if there is no such instance, or it has more cores than a group.
    """
    instance, errors = instance_of(settings), share_of(settings)
    ranks = instance.chips * settings.cores
    if ranks > MAX_RANKS:
        raise UsageError(f"CHIPS times CORES must be at most {MAX_RANKS} ranks, not {ranks}")
    (group,) = groups_of(instance, settings.cores, 1, 1)
    behaviour = Hbm(latency=settings.latency, stall=settings.stall, seed=settings.seed)
    given = Condition(instance, group, behaviour, errors)
    found = {
        GIVEN: given,
        "stalled": replace(given, behaviour=_slow(behaviour)),
        "late and disturbed": replace(given, errors=max(errors, DISTURBED), late=LATE),
        "reversed": replace(given, group=Group(instance.cores - 1, -group.stride, ranks)),
    }
    if settings.cores < CORES_PER_CHIP:
        found["on half of the chips"] = replace(given, group=Group(instance.chips // 2, 1, ranks))
    if settings.both:
        other = _other_topology(settings)
        found[f"on a {other.topology.value}"] = replace(given, instance=other)
    return found


def _slow(behaviour: Hbm) -> Hbm:
    """Return an HBM of other times, that pauses more often and at others."""
    latency = 150 if behaviour.latency < 100 else 20
    return replace(behaviour, latency=latency, stall=min(behaviour.stall + PAUSES, 240), seed=behaviour.seed + 1)


def _other_topology(settings: Settings) -> Instance:
    """Return the instance with its chips tied in the other way."""
    other = Topology.RING if settings.topology == Topology.TORUS else Topology.TORUS
    return instance_of(Settings({**settings.values, "TOPOLOGY": other.value}))
