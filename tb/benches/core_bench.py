"""What the TESTs of the whole core share: how HBM behaves, and what the engines did, summed up."""

from collections.abc import Mapping

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, queue_count, queue_name
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.outcome import Outcome
from neuroncore_rtl.tb.sim.settings import Settings

__all__ = ["hbm_of", "hbm_width", "roofline", "summary"]


def hbm_of(settings: Settings) -> Hbm:
    """Return the HBM that the options ask for, and SEED."""
    return Hbm(latency=settings.latency, rate=256 * settings.bandwidth, stall=settings.stall, seed=settings.seed)


def hbm_width(config: Config, bandwidth: int) -> int:
    """Return the bytes a cycle that HBM moves at most; bandwidth: the limit, 0 for what its ports carry."""
    width = config.hbm_ports * config.hbm_bytes
    return min(width, bandwidth) if bandwidth else width


def _shares(queue: Mapping[str, int], cycles: int) -> dict[str, float]:
    """Return the shares of a queue's cycles until the program ended; what it counted after that is idle time."""
    counts = {name: queue[name] for name in QUEUE_COUNTERS[1:]}
    counts["idle"] = max(0, counts["idle"] - (sum(counts.values()) - cycles))
    return {name: count / cycles for name, count in counts.items()}


def roofline(engine: str, ideal: int, moved: int, config: Config, bandwidth: int) -> str:
    """Say how many cycles the busiest engine and HBM need at least.

    Arguments:
        engine: its name.
        ideal: cycles that it takes if it never waits.
        moved: bytes that HBM must move.
        config: the machine's parameters.
        bandwidth: bytes a cycle that HBM moves at most; 0 for what its ports carry.
    """
    width = hbm_width(config, bandwidth)
    cycles = -(-moved // width)
    bound = engine if ideal >= cycles else "HBM"
    return f"{bound}: {engine} {ideal:,} cycles, HBM {cycles:,} for {moved:,} bytes at {width} a cycle"


def summary(run: Outcome, config: Config) -> dict[str, object]:
    """Return what the engines did, for a report: shares of the cycles, and bytes."""
    counters, cycles = run.counters, max(run.cycles, 1)
    moved = {name: sum(dma[name] for dma in counters["dma"]) for name in ("read_bytes", "write_bytes")}
    busy = {
        "tensor": counters["tensor"]["columns"],
        "vector": counters["vector"]["busy"],
        "scalar": counters["scalar"]["busy"],
        "dma": max(dma["busy"] for dma in counters["dma"]),
    }
    queues = {queue_name(queue, config): counters["queues"][queue] for queue in range(queue_count(config))}
    stalls = {
        name: {c: f"{share:.1%}" for c, share in _shares(queue, cycles).items() if share}
        | {"records": queue["records"]}
        for name, queue in queues.items()
        if queue["records"]
    }
    return {
        "busy": {name: f"{value / cycles:.1%}" for name, value in busy.items()},
        "dma_bytes": moved,
        **{f"queue_{name}": parts for name, parts in stalls.items()},
        "conflicts": {name: count for name, count in counters["conflicts"].items() if count},
        "controller": counters["controller"],
    }
