"""What the TESTs of the whole core share: an image runs on the RTL and on golden, every byte of HBM is compared, and
what the engines did is summed up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.golden.core import Core, CoreOutcome
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS, queue_count, queue_name
from neuroncore_rtl.tb.check.core_fault import explained
from neuroncore_rtl.tb.check.races import events_of, find_races
from neuroncore_rtl.tb.harness.core import HBM_BYTES, Run, design, run_images
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.report import progress, shown
from neuroncore_rtl.tb.sim.settings import Option, Settings
from neuroncore_rtl.tb.view.timeline import write_timeline
from neuroncore_rtl.tb.view.waves import waveform, write_save_file

__all__ = [
    "HBM_OPTIONS", "LISTED", "STALL", "Executed", "execute", "failures_of", "roofline", "summary", "target_option",
]  # fmt: skip

STALL = Option(
    name="STALL",
    type=int,
    default=0,
    help="every stream and memory port that the harness drives pauses in so many of 256 cycles, at random",
    minimum=0,
    maximum=240,
)

HBM_OPTIONS = (
    Option(name="LATENCY", type=int, default=64, help="cycles from an HBM address to its data", minimum=1, maximum=200),
    Option(
        name="BANDWIDTH",
        type=int,
        default=0,
        help="bytes per cycle that HBM moves at most, 0 for what its ports carry",
        minimum=0,
        maximum=1024,
    ),
    STALL,
)
"""How HBM behaves. Twice 200 cycles of beats is what its model holds."""


def target_option(default: str, engine: str) -> Option:
    """Return the option that chooses between the core and `engine` alone."""
    return Option(
        name="TARGET",
        type=str,
        default=default,
        help=f"the whole core, or {engine} alone, where HBM plays no part",
        choices=("core", "engine"),
    )


LISTED = 5
"""Differences and races that are printed one by one."""


@dataclass(frozen=True)
class Executed:
    """An image that ran on both.

    Arguments:
        run: what became of it on the RTL.
        hbm: uint8, what the RTL left.
        compared, mismatches: bytes of HBM.
        failures: what else went wrong, a sentence each.
        files: what was recorded, by what it is.
    """

    run: Run
    hbm: np.ndarray
    compared: int
    mismatches: int
    failures: tuple[str, ...]
    files: Mapping[str, str]


def execute(image: Image, config: Config, settings: Settings, label: str, limit: int = 50_000_000) -> Executed:
    """Run an image on the core and on golden, compare HBM byte for byte, and look for races.

    Arguments:
        image: what to run.
        config: the machine's parameters.
        settings: with the options SIM, WAVES, DEPTH, SEED and those of `HBM_OPTIONS`.
        label: names the files that are written.
        limit: cycles after which the run is given up.
    """
    memory = image.memory()
    if len(memory) > HBM_BYTES:
        raise ValueError(f"an image must have at most {HBM_BYTES:,} bytes, not {len(memory):,}")
    waves = waveform(f"core-{label}") if settings.waves else None
    built = simulation.build(design(config), settings.sim, waves=waves is not None)
    with progress("golden"):
        expected = Core(config, memory.copy()).run(image.base)
    behaviour = Hbm(latency=settings.latency, rate=256 * settings.bandwidth, stall=settings.stall, seed=settings.seed)
    with progress(f"{settings.sim}: running {sum(len(part) for part in image.records):,} records"):
        outcome = run_images(
            built,
            config,
            memory,
            (image.base,),
            behaviour=behaviour,
            limit=limit,
            waves=waves,
            waves_levels=settings.depth,
        )
    (run,) = outcome.runs
    differs = np.flatnonzero(outcome.hbm != expected.hbm[: len(outcome.hbm)])
    for address in differs[:LISTED]:
        print(f"HBM {address:#x}: RTL {outcome.hbm[address]:02x}, golden {expected.hbm[address]:02x}")
    timeline = write_timeline(
        SIM_BUILD / "timelines" / f"{label}.json", run, config, lambda address: image.locate(address)[1]
    )
    files = {"timeline": shown(timeline)} | ({"waveform": shown(write_save_file(waves))} if waves else {})
    return Executed(
        run=run,
        hbm=outcome.hbm,
        compared=len(memory),
        mismatches=len(differs),
        failures=tuple(failures_of(run, expected, memory, config)),
        files=files,
    )


def failures_of(run: Run, expected: CoreOutcome, memory: np.ndarray, config: Config) -> Sequence[str]:
    """Return what is wrong with a run besides the contents of HBM.

    Arguments:
        run: what became of the image on the RTL.
        expected: and on golden.
        memory: uint8 [bytes], HBM from address 0 on, with the records.
        config: the machine's parameters.
    """
    found = []
    if run.gave_up:
        found.append(f"the program must end, but was given up after {run.cycles:,} cycles")
    if run.error is not None:
        found.append(f"the core must report no error, but does: {explained(run.error, memory, config)}")
    if run.exit_code != expected.exit_code:
        found.append(f"the program must exit with {expected.exit_code}, not {run.exit_code}")
    if run.console != (printed := expected.console.decode("latin-1")):
        found.append(f"the program must print {printed!r}, not {run.console!r}")
    if sorted((event.queue, event.address) for event in run.events) != sorted(expected.records):
        found.append(f"as many records must be executed as on golden, {len(expected.records)}, not {len(run.events)}")
    finished = [(e.queue, e.address, e.issued, e.retired) for e in run.events if e.retired is not None]
    races = find_races(events_of(finished, memory, config), config)
    found += [f"race: {race}" for race in races[:LISTED]]
    if len(races) > LISTED:
        found.append(f"and {len(races) - LISTED} more races")
    return found


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
    width = config.hbm_ports * config.hbm_bytes
    width = min(width, bandwidth) if bandwidth else width
    cycles = -(-moved // width)
    bound = engine if ideal >= cycles else "HBM"
    return f"{bound}: {engine} {ideal:,} cycles, HBM {cycles:,} for {moved:,} bytes at {width} a cycle"


def summary(run: Run, config: Config) -> dict[str, object]:
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
