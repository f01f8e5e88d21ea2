"""Duration of an all-reduce over several instances: a model with approximate figures for the network between them.

1. Reduce-scatter over the links within every instance: each core then has a share of the vector.
2. All-reduce of the shares of cores of the same rank over the network, as a ring of instances.
3. All-gather over the links within every instance.

The phases do not overlap. All shares of an instance pass its network adapters at the same time; the network between
instances is assumed to carry the full rate of all adapters.
"""

from dataclasses import dataclass

from neuroncore_rtl.golden.link.timing import LinkCase, Parameters, cycles_of
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, element_bytes

__all__ = ["NETWORKS", "Cluster", "ClusterTiming", "all_reduce"]

NETWORKS = {"trn1": 800, "trn1n": 1600}
"""Published Gbit/s of an instance's network adapters, each direction."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Cluster: several equal instances, and the network between them.

    Arguments:
        instance: parameters of one instance.
        instances: number of instances.
        gbits: Gbit/s of all network adapters of an instance, in each direction; payload only, without protocol
            overhead.
        latency_us: latency of a message between instances in microseconds, software included. An assumption.
        efficiency: fraction of `gbits` that transfers achieve. An assumption.
        clock_ghz: clock frequency of the cores in GHz.
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
        """Number of chips in all instances."""
        return self.instances * self.instance.chips

    @property
    def network_bytes(self) -> float:
        """Bytes per cycle that an instance sends to the others."""
        return self.gbits * self.efficiency / 8 / self.clock_ghz

    @property
    def network_latency(self) -> float:
        """Cycles from one instance to another."""
        return self.latency_us * 1000 * self.clock_ghz


@dataclass(frozen=True)
class ClusterTiming:
    """Cycles of each phase of a collective on a cluster; with one instance, `between`, over the network, is 0."""

    reduce_scatter: int
    between: int
    all_gather: int

    @property
    def cycles(self) -> int:
        """Total cycles of all phases."""
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

    Between instances elements have the format `dtype`, so BF16 is rounded in each phase. `narrow` (see
    `spec.isa.collective.Collective`) and `parameters` apply within instances.
    """
    cores = cluster.instance.cores
    share = -(-count // cores)
    within = {"instance": cluster.instance, "ranks": cores, "count": share, "dtype": dtype}
    scatter = LinkCase(kind=CollectiveKind.REDUCE_SCATTER, narrow=narrow, **within)
    gather = LinkCase(kind=CollectiveKind.ALL_GATHER, **within)
    step = -(-share // cluster.instances) * cores * element_bytes(dtype) / cluster.network_bytes
    between = 2 * (cluster.instances - 1) * (step + cluster.network_latency)
    return ClusterTiming(cycles_of(scatter, parameters), round(between), cycles_of(gather, parameters))
