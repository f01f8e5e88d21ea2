"""Activity of a core: busy and stalled cycles, bytes, and the bounds of the roofline."""

from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, queue_name

__all__ = ["engine_busy_cycles", "hbm_cycles", "hbm_width", "queue_cycles", "roofline", "summary"]


def hbm_width(config: Config, bandwidth: int) -> int:
    """Return the most bytes per cycle of HBM; bandwidth: its limit, 0 for the width of its ports."""
    width = config.hbm_ports * config.hbm_bytes
    return min(width, bandwidth) if bandwidth else width


def engine_busy_cycles(run: Outcome) -> dict[str, int]:
    """Return the busy cycles of each engine.

    The tensor engine is busy if a column enters the array; "dma" is the busiest DMA engine.
    """
    counters = run.counters
    return {
        "tensor": counters["tensor"]["columns"],
        "vector": counters["vector"]["busy"],
        "scalar": counters["scalar"]["busy"],
        "dma": max(dma["busy"] for dma in counters["dma"]),
    }


def queue_cycles(run: Outcome, config: Config) -> dict[str, dict[str, int]]:
    """Return the cycles of each queue that had records, by cause, up to the end of the program.

    A queue counts on as idle after that end; the surplus is subtracted.
    """
    found = {}
    for number, queue in enumerate(run.counters["queues"]):
        if queue["records"]:
            counts = {name: queue[name] for name in QUEUE_COUNTERS[1:]}
            counts["idle"] = max(0, counts["idle"] - (sum(counts.values()) - run.cycles))
            found[queue_name(number, config)] = counts
    return found


def hbm_cycles(moved: int, config: Config, bandwidth: int) -> int:
    """Return the fewest cycles of HBM for `moved` bytes; arguments: see :func:`roofline`."""
    return -(-moved // hbm_width(config, bandwidth))


def roofline(engine: str, ideal: int, moved: int, config: Config, bandwidth: int) -> str:
    """Return the lower bounds on the cycles of an engine and of HBM, as a sentence.

    The engine needs `ideal` cycles without stalls; HBM must move `moved` bytes, see :func:`hbm_width`.
    """
    width, cycles = hbm_width(config, bandwidth), hbm_cycles(moved, config, bandwidth)
    bound = engine if ideal >= cycles else "HBM"
    return f"{bound}: {engine} {ideal:,} cycles, HBM {cycles:,} for {moved:,} bytes at {width} a cycle"


def summary(run: Outcome, config: Config) -> dict[str, object]:
    """Return the activity of the engines for a report: shares of the cycles, and bytes."""
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
