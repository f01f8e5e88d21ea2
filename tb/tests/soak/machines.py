"""Machines that a soak draws: every parameter that a configuration, or an instance, has, over its range as far as a
simulation is built in minutes; and the tempers of their memories."""

import numpy as np

from neuroncore_rtl.run.harness.hbm import Hbm, random_hbm
from neuroncore_rtl.spec.config import LONE_UNITS, Config
from neuroncore_rtl.spec.instance import Instance, Topology

__all__ = ["SIDES", "TEMPERS", "drawn_config", "drawn_hbm", "drawn_instance"]

SIDES = (2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16)
"""Rows and columns. What more of them are is the same again, and takes as many times as long."""

SBUF = (4, 8, 8, 12, 16, 24, 32, 192)
"""KiB a partition: mostly few, as all of it is compared."""

DMA_ENGINES = (1, 2, 2, 3, 4, 5, 8, 16)

TEMPERS = {
    "latency": (1, 8, 64, 150), "gap": (0, 0, 5), "rate": (0, 0, 4 * 256), "stall": (0, 40, 160),
    "reorder": (0, 100, 200), "interleave": (False, True),
}  # fmt: skip
"""What the behaviour of a core's HBM is drawn from."""

LINK_TEMPERS = {"latency": (1, 8, 64, 150), "gap": (0, 0, 5), "port_rate": (0, 0, 4 * 256), "stall": (0, 0, 40, 160)}
"""What that of an instance's is drawn from, whose engines take no answers out of order."""


def drawn_config(rng: np.random.Generator, sides: tuple[int, ...] = SIDES) -> Config:
    """Return parameters of a core that is alone; sides: what its rows and columns are drawn from."""

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
    chosen |= {name: within(name) for name in _WHOLE}
    # A unit that is not there is one less to be wrong.
    chosen |= {name: int(rng.random() < 0.8) for name, span in Config.RANGES.items() if span == (0, 1)}
    rows, columns = of(*sides), of(*sides)
    chosen["line_bytes"] = max(line, Config(rows=rows, columns=columns).load_bytes)
    lines = 2 * chosen["sbuf_banks"] * chosen["line_bytes"]
    chosen["sbuf_bytes"] = sbuf // lines * lines
    chosen["lane_partitions"] = of(*(n for n in (1, 1, 1, 2, 4) if max(rows, columns) % n == 0))
    if chosen["lane_partitions"] > 1:
        chosen |= {f"vector_{unit}": 0 for unit in LONE_UNITS}
    chosen["edge_latency"] = 1 + chosen["mac_latency"] % Config.RANGES["edge_latency"][1]
    return Config(
        rows=rows,
        columns=columns,
        significand_bits=of(8, 12, 12),
        psum_words=power("psum_words"),
        psum_banks=power("psum_banks"),
        semaphores=power("semaphores"),
        **chosen,
    )


_WHOLE = (
    "mac_latency", "add_latency", "vector_latency", "scalar_depth", "cast_latency", "records_ahead", "counters",
)  # fmt: skip
"""Parameters that may have any value of their range."""


def drawn_instance(rng: np.random.Generator, core: Config, chips: tuple[int, ...]) -> Instance:
    """Return an instance.

    Arguments:
        rng: decides the rest.
        core: parameters of its cores.
        chips: what their number is drawn from.
    """
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
    """Return the behaviour of an HBM; links: of those of an instance."""
    return random_hbm(rng, **(LINK_TEMPERS if links else TEMPERS))
