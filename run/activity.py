"""Activity of a core in a run: busy and stalled cycles, bytes, and the bounds of the roofline."""

from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, queue_name

__all__ = ["engine_busy_cycles", "hbm_cycles", "hbm_width", "queue_cycles", "roofline", "summary"]


def hbm_width(config: Config, bandwidth: int) -> int:
    """Return the bytes a cycle that HBM moves at most; bandwidth: the limit, 0 for what its ports carry."""
    width = config.hbm_ports * config.hbm_bytes
    return min(width, bandwidth) if bandwidth else width


def engine_busy_cycles(run: Outcome) -> dict[str, int]:
    """Return for each engine the cycles in which it worked, of the tensor engine those in which a column entered the
    array, of the DMA engines those of the busiest one."""
    counters = run.counters
    return {
        "tensor": counters["tensor"]["columns"],
        "vector": counters["vector"]["busy"],
        "scalar": counters["scalar"]["busy"],
        "dma": max(dma["busy"] for dma in counters["dma"]),
    }


def queue_cycles(run: Outcome, config: Config) -> dict[str, dict[str, int]]:
    """Return for each queue that had records the cycles until the program ended, by what they were spent on; what a
    queue counted after that is idle time."""
    found = {}
    for number, queue in enumerate(run.counters["queues"]):
        if queue["records"]:
            counts = {name: queue[name] for name in QUEUE_COUNTERS[1:]}
            counts["idle"] = max(0, counts["idle"] - (sum(counts.values()) - run.cycles))
            found[queue_name(number, config)] = counts
    return found


def hbm_cycles(moved: int, config: Config, bandwidth: int) -> int:
    """Return the cycles that HBM needs at least; arguments as of :func:`roofline`."""
    return -(-moved // hbm_width(config, bandwidth))


def roofline(engine: str, ideal: int, moved: int, config: Config, bandwidth: int) -> str:
    """Say how many cycles the busiest engine and HBM need at least.

    Arguments:
        engine: its name.
        ideal: cycles that it takes if it never waits.
        moved: bytes that HBM must move.
        config: the machine's parameters.
        bandwidth: bytes a cycle that HBM moves at most; 0 for what its ports carry.
    """
    width, cycles = hbm_width(config, bandwidth), hbm_cycles(moved, config, bandwidth)
    bound = engine if ideal >= cycles else "HBM"
    return f"{bound}: {engine} {ideal:,} cycles, HBM {cycles:,} for {moved:,} bytes at {width} a cycle"


def summary(run: Outcome, config: Config) -> dict[str, object]:
    """Return what the engines did, for a report: shares of the cycles, and bytes."""
    counters, cycles = run.counters, max(run.cycles, 1)
    moved = {name: sum(dma[name] for dma in counters["dma"]) for name in ("read_bytes", "write_bytes")}
    records = {queue_name(number, config): queue["records"] for number, queue in enumerate(counters["queues"])}
    queues = {
        name: {"records": records[name]} | {cause: f"{count / cycles:.1%}" for cause, count in counts.items()}
        for name, counts in queue_cycles(run, config).items()
    }
    return {
        "busy": {name: f"{value / cycles:.1%}" for name, value in engine_busy_cycles(run).items()},
        "dma_bytes": moved,
        "queues": queues,
        "conflicts": {name: count for name, count in counters["conflicts"].items() if count},
        "controller": counters["controller"],
    }
