"""What TESTs share, those of the whole core above all: variables, how HBM behaves, and what the engines did."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.kernels.program.program import ORDERS, Program
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.settings import (
    PROFILE,
    RECORDED,
    SEED,
    Option,
    Settings,
    UsageError,
    choice,
    configuration_options,
    integer,
)
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, queue_name

__all__ = [
    "HBM_OPTIONS", "HBM_ROOM", "LATENCY", "ORDER", "STALL", "TILE", "busy_cycles", "check_room", "core_options",
    "hbm_cycles", "hbm_of", "hbm_width", "queue_cycles", "random_hbm", "roofline", "summary",
]  # fmt: skip

_STALL = "every stream and memory port that the harness drives pauses in so many of 256 cycles, at random"
STALL = integer("STALL", 0, _STALL, 0, 240)
LATENCY = integer("LATENCY", 64, "cycles from an HBM address to its data", 1, 200)
BANDWIDTH = integer("BANDWIDTH", 0, "bytes per cycle that HBM moves at most, 0 for what its ports carry", 0, 1024)

HBM_ROOM = 1 << 29
"""Bytes of HBM that a simulation has room for: the RTL's and golden's, and files of them as text, are in memory."""

HBM_OPTIONS = (LATENCY, BANDWIDTH, STALL)
"""How HBM behaves. Twice 200 cycles of beats is what its model holds."""

_ORDER = "how the instructions of a queue follow each other: as kernels append them, or so that engines are busy"
ORDER = choice("ORDER", Program.order, _ORDER, ORDERS)


TILE = integer(
    "TILE",
    None,
    "rows and columns of the array that kernels use, all unless told: the same TILE, the same bits on every PRESET",
    1,
    128,
)


def core_options(target: str, engine: str | None, preset: str) -> tuple[Option, ...]:
    """Return the variables of a TEST of the whole core or of an engine alone, behind its own.

    Arguments:
        target: what it runs on unless told: "core", "engine" or "model".
        engine: what is there alone; None: nothing may be.
        preset: its configuration unless told.
    """
    alone = f"{engine} alone, where HBM plays no part, or " if engine else ""
    where = f"the whole core, or {alone}the core's timing model, where no RTL runs"
    target_option = choice("TARGET", target, where, ("core", "engine", "model") if engine else ("core", "model"))
    return target_option, *configuration_options(preset), ORDER, SEED, *HBM_OPTIONS, *RECORDED, PROFILE


def check_room(size: int) -> None:
    """Refuse what would need more HBM than a simulation has room for, before any of it is made.

    Arguments:
        size: bytes of all tensors in HBM.

    Raises:
        UsageError: if there are too many.
    """
    if size > HBM_ROOM:
        raise UsageError(f"tensors in HBM must have at most {HBM_ROOM:,} bytes to be simulated, not {size:,}")


def hbm_of(settings: Settings) -> Hbm:
    """Return the HBM that the options ask for, and SEED; without BANDWIDTH it has no limit."""
    rate = 256 * settings.values.get("BANDWIDTH", 0)
    return Hbm(latency=settings.latency, rate=rate, stall=settings.stall, seed=settings.seed)


def random_hbm(rng: np.random.Generator, **choices: Sequence[int]) -> Hbm:
    """Return an HBM of some temper; choices: of its parameters, in the order in which they are drawn."""
    drawn = {name: int(rng.choice(values)) for name, values in choices.items()}
    return Hbm(**drawn, seed=int(rng.integers(1, 1 << 31)))


def hbm_width(config: Config, bandwidth: int) -> int:
    """Return the bytes a cycle that HBM moves at most; bandwidth: the limit, 0 for what its ports carry."""
    width = config.hbm_ports * config.hbm_bytes
    return min(width, bandwidth) if bandwidth else width


def busy_cycles(run: Outcome) -> dict[str, int]:
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
        "busy": {name: f"{value / cycles:.1%}" for name, value in busy_cycles(run).items()},
        "dma_bytes": moved,
        "queues": queues,
        "conflicts": {name: count for name, count in counters["conflicts"].items() if count},
        "controller": counters["controller"],
    }
