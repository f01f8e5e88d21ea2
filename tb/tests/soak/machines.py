"""Random and simpler machines and HBM behaviours; parameters span their range, as far as a build takes minutes."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, fields, replace

import numpy as np

from neuroncore_rtl.run.harness.hbm import Hbm, random_hbm
from neuroncore_rtl.spec.config import LONE_UNITS, Config
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.tb.tests.core.program import TEMPERS
from neuroncore_rtl.tb.tests.links.collectives import TEMPERS as LINK_TEMPERS

__all__ = [
    "SIDES", "drawn_config", "drawn_hbm", "drawn_instance", "hbm_labels", "instance_labels", "machine_labels",
    "plainer_configs", "plainer_instances",
]  # fmt: skip

SIDES = (2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16)  # larger arrays only take more time
SBUF = (4, 8, 8, 12, 16, 24, 32, 192)  # mostly small, because all of it is compared
DMA_ENGINES = (1, 2, 2, 3, 4, 5, 8, 16)

WHOLE_RANGE = (
    "mac_latency", "add_latency", "vector_latency", "scalar_depth", "cast_latency", "records_ahead", "counters",
)  # fmt: skip

RATES = {
    **dict.fromkeys(("vector_speed", "scalar_speed", "gpsimd_speed"), (20, 100)), "gpsimd_start": (0, 40),
    "least_interval": (0, 80), "access_cycles": (0, 60), "load_interval": (0, 20), "swap_cycles": (0, 40),
    "result_latency": (0, 300), "dma_start": (0, 400), "packet_interval": (0, 60), "ring_rate": (0, 64),
}  # fmt: skip
"""Rates with hardware, and their ranges here."""


def drawn_config(rng: np.random.Generator, sides: tuple[int, ...] = SIDES) -> Config:
    """Return the parameters of a random single core; sides: candidates for its rows and columns."""

    def of(*values: int) -> int:
        return int(rng.choice(values))

    def within(name: str) -> int:
        low, high = Config.RANGES[name]
        return int(rng.integers(low, high + 1))

    def power(name: str, low: int = 0) -> int:
        low, high = max(low, Config.RANGES[name][0]), Config.RANGES[name][1]
        return of(*(1 << n for n in range(low.bit_length() - 1, high.bit_length())))

    chosen = {name: power(name) for name in ("hbm_bytes", "sbuf_banks", "dma_beats", "cast_lanes", "local_bytes")}
    line, sbuf = power("line_bytes", chosen["hbm_bytes"]), 1024 * of(*SBUF)
    chosen["dma_engines"] = of(*DMA_ENGINES)
    chosen["hbm_ports"] = int(rng.integers(1, min(Config.RANGES["hbm_ports"][1], chosen["dma_engines"]) + 1))
    chosen |= {name: within(name) for name in WHOLE_RANGE}
    # Optional units are mostly present: an absent unit cannot be wrong.
    chosen |= {name: int(rng.random() < 0.8) for name, span in Config.RANGES.items() if span == (0, 1)}
    rows, columns = of(*sides), of(*sides)
    chosen["line_bytes"] = max(line, Config(rows=rows, columns=columns).load_bytes)
    lines = 2 * chosen["sbuf_banks"] * chosen["line_bytes"]
    chosen["sbuf_bytes"] = sbuf // lines * lines
    chosen["lane_partitions"] = of(*(n for n in (1, 1, 1, 2, 4) if max(rows, columns) % n == 0))
    if chosen["lane_partitions"] > 1:
        chosen |= {f"vector_{unit}": 0 for unit in LONE_UNITS}
    chosen["edge_latency"] = 1 + chosen["mac_latency"] % Config.RANGES["edge_latency"][1]
    chosen["significand_bits"] = of(8, 12, 12)
    chosen |= {name: power(name) for name in ("psum_words", "psum_banks", "semaphores")}
    if rng.random() < 0.3:  # rates mostly make a run longer
        chosen |= {name: int(rng.integers(low, high + 1)) for name, (low, high) in RATES.items()}
    return Config(rows=rows, columns=columns, **chosen)


def drawn_instance(rng: np.random.Generator, core: Config, chips: tuple[int, ...]) -> Instance:
    """Return a random instance of such cores; chips: candidates for its number of chips."""
    count = int(rng.choice(chips))
    widths = [width for width in range(2, count // 2 + 1) if count % width == 0]
    torus = bool(widths) and rng.random() < 0.5
    return Instance(
        chips=count,
        topology=Topology.TORUS if torus else Topology.RING,
        width=int(rng.choice(widths)) if torus else 2,
        link_bytes=int(rng.choice([8, 16, 32, 64])),
        link_latency=int(rng.choice([1, 2, 3, 7, 20, 64])),
        core=core,
    )


def drawn_hbm(rng: np.random.Generator, *, links: bool = False) -> Hbm:
    """Return a random HBM behaviour; an instance needs responses in order."""
    return random_hbm(rng, **(LINK_TEMPERS if links else TEMPERS))


def plainer_configs(config: Config) -> Iterator[Config]:
    """Yield configurations closer to the default: first all parameters except rows and columns, then single ones."""
    defaults = {field.name: field.default for field in fields(Config) if field.name not in ("rows", "columns", "cores")}
    changed = {name: value for name, value in defaults.items() if getattr(config, name) != value}
    one_by_one = [{name: value} for name, value in changed.items()]
    for values in [changed, *one_by_one] if len(changed) > 1 else one_by_one:
        with suppress(ValueError):  # some parameters depend on each other
            yield config.with_overrides(**values)


def plainer_instances(instance: Instance, used: int) -> Iterator[Instance]:
    """Yield instances closer to the default, with at least the cores 0 to `used`."""
    ring = replace(instance, topology=Topology.RING, width=2)
    chips = max(2, used // 2 + 1)
    plain = replace(ring, chips=chips, link_bytes=16, link_latency=2)
    for one in (plain, replace(ring, chips=chips), ring):
        if one != instance:
            yield one


def machine_labels(config: Config) -> Counter[str]:
    """Return the labels of a core's parameters."""
    return Counter({f"{name}:{value}": 1 for name, value in asdict(config).items()})


def instance_labels(instance: Instance, errors: float) -> Counter[str]:
    """Return the labels of an instance's parameters and of its rate of disturbed frames."""
    numbers = {name: getattr(instance, name) for name in ("chips", "link_bytes", "link_latency", "topology")}
    found = {f"{name}:{value}": 1 for name, value in numbers.items()}
    return Counter({**found, f"cores:{instance.cores}": 1, f"errors on links:{errors}": 1})


def hbm_labels(behaviour: Hbm) -> Counter[str]:
    """Return the labels of the parameters that make an HBM slower than the default, and of its latency."""
    disturbed = ("gap", "port_rate", "rate", "stall", "reorder", "interleave")
    found = [f"stall:HBM {name.replace('_', ' ')}" for name in disturbed if getattr(behaviour, name)]
    return Counter([*(found or ["stall:HBM none"]), f"latency of HBM:{behaviour.latency}"])
