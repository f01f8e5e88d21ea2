"""How long an all-reduce takes over several instances: a model, with round figures of what joins them.

Every core of an instance reduces its share of the vector over the links within (reduce-scatter); cores of the same rank
reduce the shares over the network, as a ring of instances; and what has become of them is gathered within again. The
phases do not overlap. All shares of an instance go through its network adapters at once; the network between is taken
to be as wide as all of them.
"""

from dataclasses import dataclass

from neuroncore_rtl.golden.link.timing import LinkCase, Parameters, cycles_of
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, element_bytes

__all__ = ["NETWORKS", "Cluster", "ClusterTiming", "all_reduce"]

NETWORKS = {"trn1": 800, "trn1n": 1600}
"""Gbit/s of an instance's network adapters, each way, as published."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Instances and what joins them.

    Arguments:
        instance: one of them.
        instances: how many.
        gbits: Gbit/s of an instance's adapters together, each way; bytes of messages, without what goes with them.
        latency_us: from an instance to another, in microseconds, software included. An assumption.
        efficiency: share of `gbits` that is reached. An assumption.
        clock_ghz: of the cores.
    """

    instance: Instance
    instances: int
    gbits: float = NETWORKS["trn1"]
    latency_us: float = 15.0
    efficiency: float = 0.9
    clock_ghz: float = 1.4

    def __post_init__(self):
        if self.instances < 1:
            raise ValueError(f"instances must be at least 1, not {self.instances!r}")
        for name in ("gbits", "clock_ghz", "efficiency"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")

    @property
    def chips(self) -> int:
        """Chips of all instances."""
        return self.instances * self.instance.chips

    @property
    def network_bytes(self) -> float:
        """Bytes that go from an instance to the others in a cycle."""
        return self.gbits * self.efficiency / 8 / self.clock_ghz

    @property
    def network_latency(self) -> float:
        """Cycles from an instance to another."""
        return self.latency_us * 1000 * self.clock_ghz


@dataclass(frozen=True)
class ClusterTiming:
    """Cycles of each phase; without other instances all of it is in the first one and the last."""

    reduce_scatter: int
    between: int
    all_gather: int

    @property
    def cycles(self) -> int:
        """Cycles of all phases."""
        return self.reduce_scatter + self.between + self.all_gather


def all_reduce(
    cluster: Cluster,
    count: int,
    dtype: CollectiveType = CollectiveType.FP32,
    *,
    narrow: bool = False,
    parameters: Parameters | None = None,
) -> ClusterTiming:
    """Return the time of an all-reduce of `count` elements over all cores of all instances.

    Between instances elements go as they are in memory: each phase rounds BF16.

    Arguments:
        narrow: see `spec.isa.collective.Collective`; within instances.
        parameters: of the links within.
    """
    cores = cluster.instance.cores
    share = -(-count // cores)
    within = {"instance": cluster.instance, "ranks": cores, "count": share, "dtype": dtype}
    scatter = LinkCase(kind=CollectiveKind.REDUCE_SCATTER, narrow=narrow, **within)
    gather = LinkCase(kind=CollectiveKind.ALL_GATHER, **within)
    step = -(-share // cluster.instances) * cores * element_bytes(dtype) / cluster.network_bytes
    between = 2 * (cluster.instances - 1) * (step + cluster.network_latency)
    return ClusterTiming(cycles_of(scatter, parameters), round(between), cycles_of(gather, parameters))
