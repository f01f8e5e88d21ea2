"""The machine's parameters: one frozen, validated record, and the presets that have a name.

Everything else (skews, drain times, memory shapes) is derived from these where it is needed, never typed again.
"""

from dataclasses import asdict, dataclass, fields, replace
from enum import IntEnum
from typing import ClassVar

from neuroncore_rtl.spec.formats import Format, matmul_formats
from neuroncore_rtl.spec.memory_map import LOCAL_BYTES

__all__ = [
    "LINE_BYTES", "LOAD_COLUMNS", "LONE_UNITS", "PRESETS", "PSUM_BANKS", "SCALAR_UNITS", "SEMAPHORE_COUNT",
    "VECTOR_UNITS", "Config", "Counters", "preset_named",
]  # fmt: skip

LOAD_COLUMNS = 4
"""Stationary columns that enter the array per cycle; NeuronCore-v2's fast weight load (128 columns in 32 cycles)."""

PSUM_BANKS = 8
"""Banks of PSUM per partition, hence accumulation groups open at once (NeuronCore-v2: 16 KiB in 8 banks)."""

LINE_BYTES = 64
"""Bytes of the longest line of SBUF, and of the widest beat of the HBM port; every address in HBM is a multiple."""

SEMAPHORE_COUNT = 256
"""Semaphores that a record can name, as many as NeuronCore-v2 has; 16 bits each."""

VECTOR_UNITS = ("division", "power", "search", "statistics", "random")
"""Units that a vector lane has or does without."""

LONE_UNITS = ("division", "power", "search", "statistics")
"""Those that only a lane of one partition has: they take long, or keep what they have seen."""

SCALAR_UNITS = ("trigonometry", "random")
"""Units that an activation lane has or does without."""


class Counters(IntEnum):
    """Which counters a core has."""

    NONE = 0
    """None; they read as 0."""
    QUEUES = 1
    """Those of the queues, which the controller reads, too."""
    ALL = 2
    """Those of engines and memories as well."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Parameters of one core.

    Arguments:
        rows: processing elements along K, one SBUF partition each; 2 to 1024 (an INT8 column sum stays below 2**24).
        columns: processing elements along M, one PSUM partition each; 2 to 1024.
        mac_latency: pipeline stages of a multiply-accumulate, in cycles; 1 to 5. Sums cross the array in rows *
            mac_latency cycles; more stages buy clock frequency, which a cycle count does not show.
        significand_bits: of an operand in the array; 12, or 8 for processing elements that multiply BF16, FP8 and INT8
            alone (`matmul_formats`).
        add_latency: pipeline stages of the PSUM adder, in cycles; 1 to 7.
        vector_latency: pipeline stages of an ALU of the vector lanes, in cycles; 1 to 6. A reduction takes an element
            in so many cycles, a scan in twice as many; widening and casts have stages of their own if it is above 1.
        vector_division: 1, or 0 for vector lanes without a divider: quotients, remainders, RECIPROCAL and BN_AGGR are
            illegal then.
        vector_power: so for powers.
        vector_search: so for MAX8, FIND_INDEX8 and MATCH_REPLACE8.
        vector_statistics: so for BN_STATS and BN_AGGR.
        vector_random: so for random bits: DROPOUT, and stochastic rounding by the vector engine.
        scalar_depth: of the activation lanes; 1, or 2 with stages for a faster clock. An element takes
            `spec.timing.SCALAR_LANES_LATENCY` cycles; one enters a cycle in any case.
        scalar_trigonometry: 1, or 0 for activation lanes without SIN and COS, which are illegal then.
        scalar_random: so without random bits: no stochastic rounding by the scalar engine.
        dma_engines: DMA engines, each with a queue; 1 to 16. Engine i is on HBM port i modulo `hbm_ports`.
        hbm_ports: AXI4 ports to HBM; 1 to 4, no more than DMA engines.
        hbm_bytes: bytes of a beat of an HBM port; 8, 16, 32 or 64.
        cores: of the instance that it is a part of, at most 128; 1: it is alone, and has no collective engine.
        sbuf_bytes: bytes of SBUF per partition (NeuronCore-v2: 24 MiB in 128 partitions); 1 KiB to 192 KiB, a multiple
            of two lines of every bank.
        sbuf_banks: banks of SBUF in every partition, interleaved by lines: each reads one line and writes one line a
            cycle; 2, 4 or 8.
        line_bytes: of a line of SBUF: the width of a bank in one partition; 8, 16, 32 or 64, at least
            `hbm_bytes` and `load_bytes`.
        psum_words: FP32 words per PSUM bank and partition, hence the longest moving tile (NeuronCore-v2: 512); a power
            of two from 16 to 512.
        psum_banks: memories of a partition in which PSUM's `PSUM_BANKS` banks lie, bank b in memory b modulo so many:
            each reads one word and writes one word a cycle; 2, 4 or 8.
        local_bytes: bytes of the controller's local memory; a power of two from 16 KiB to 64 KiB.
        dma_beats: beats that a DMA engine has asked for, or that have come and not gone on; a power of two from 32 to
            128. It hides the latency of HBM if it is more than that in cycles.
        cast_lanes: elements that a DMA engine casts in a cycle; 1, 2 or 4.
        cast_latency: pipeline stages of a cast's rounding, in cycles; 1 to 4. With more than one, widening has three.
        semaphores: of the core; a power of two from 16 to 256. The upper bits of a semaphore's number are ignored if
            there are fewer than 256.
        records_ahead: records that a queue fetches before their turn, at most: 1 to 8, and no more than
            `spec.isa.engine.RECORDS_AHEAD` of its engine.
        counters: which of the core's counters there are, see :class:`Counters`.
        edge_latency: cycles from a memory word to its operands at the array's edge; 1 to 3.
        port_latency: 0, or 1 for registers between those who wait for each other: from the queues to the engines, from
            the engines to the memories' ports and to the semaphores.
        lane_partitions: partitions that a lane of the vector or scalar engine serves, one after the other; 1, 2 or 4, a
            divisor of `partitions`. A step of all partitions takes as many cycles. More than one only without division,
            power, search and statistics.

    Raises:
        TypeError: if a parameter is not an integer.
        ValueError: if a parameter is out of its range.
    """

    rows: int
    columns: int
    mac_latency: int = 1
    significand_bits: int = 12
    add_latency: int = 2
    vector_latency: int = 1
    vector_division: int = 1
    vector_power: int = 1
    vector_search: int = 1
    vector_statistics: int = 1
    vector_random: int = 1
    scalar_depth: int = 1
    scalar_trigonometry: int = 1
    scalar_random: int = 1
    dma_engines: int = 2
    hbm_ports: int = 1
    hbm_bytes: int = 16
    cores: int = 1
    sbuf_bytes: int = 192 * 1024
    sbuf_banks: int = 8
    line_bytes: int = LINE_BYTES
    psum_words: int = 512
    psum_banks: int = PSUM_BANKS
    local_bytes: int = LOCAL_BYTES
    dma_beats: int = 128
    cast_lanes: int = 4
    cast_latency: int = 1
    semaphores: int = SEMAPHORE_COUNT
    records_ahead: int = 8
    counters: int = Counters.ALL
    edge_latency: int = 1
    port_latency: int = 0
    lane_partitions: int = 1

    RANGES: ClassVar = {
        "rows": (2, 1024),
        "columns": (2, 1024),
        "mac_latency": (1, 5),
        "significand_bits": (8, 12),
        "add_latency": (1, 7),
        "vector_latency": (1, 6),
        **{f"vector_{unit}": (0, 1) for unit in VECTOR_UNITS},
        "scalar_depth": (1, 2),
        **{f"scalar_{unit}": (0, 1) for unit in SCALAR_UNITS},
        "dma_engines": (1, 16),
        "hbm_ports": (1, 4),
        "hbm_bytes": (8, LINE_BYTES),
        "cores": (1, 128),
        "sbuf_bytes": (1024, 192 * 1024),
        "sbuf_banks": (2, 8),
        "line_bytes": (8, LINE_BYTES),
        "psum_words": (16, 512),
        "local_bytes": (16 * 1024, LOCAL_BYTES),
        "dma_beats": (32, 128),
        "cast_lanes": (1, 4),
        "cast_latency": (1, 4),
        "semaphores": (16, SEMAPHORE_COUNT),
        "records_ahead": (1, 8),
        "counters": (Counters.NONE, Counters.ALL),
        "edge_latency": (1, 3),
        "port_latency": (0, 1),
        "psum_banks": (2, PSUM_BANKS),
        "lane_partitions": (1, 4),
    }
    ALWAYS_NAMED: ClassVar = (
        "rows", "columns", "mac_latency", "add_latency", "dma_engines", "hbm_ports", "hbm_bytes", "cores",
    )  # fmt: skip
    POWERS_OF_TWO: ClassVar = (
        "hbm_bytes", "sbuf_banks", "line_bytes", "psum_words", "psum_banks", "local_bytes", "dma_beats", "cast_lanes",
        "semaphores", "lane_partitions",
    )  # fmt: skip

    def __post_init__(self):
        for name, (low, high) in self.RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")
        for name in self.POWERS_OF_TWO:
            if (value := getattr(self, name)) & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        if self.significand_bits not in (8, 12):
            raise ValueError(f"significand_bits must be 8 or 12, not {self.significand_bits!r}")
        if self.hbm_ports > self.dma_engines:
            raise ValueError(f"hbm_ports must be at most dma_engines ({self.dma_engines}), not {self.hbm_ports!r}")
        for name in ("hbm_bytes", "load_bytes"):
            if self.line_bytes < (least := getattr(self, name)):
                raise ValueError(f"line_bytes must be at least {name} ({least}), not {self.line_bytes!r}")
        if self.sbuf_bytes % (2 * self.sbuf_banks * self.line_bytes):
            rule = f"sbuf_bytes must be a multiple of {2 * self.sbuf_banks * self.line_bytes}, two lines of every bank"
            raise ValueError(f"{rule}, not {self.sbuf_bytes!r}")
        self._check_lanes()

    def _check_lanes(self):
        """Refuse what lanes of several partitions cannot do: their state is kept for each, what takes long is not."""
        if self.partitions % self.lane_partitions:
            rule = f"lane_partitions must divide the larger of rows and columns ({self.partitions})"
            raise ValueError(f"{rule}, not {self.lane_partitions!r}")
        alone = [f"vector_{unit}" for unit in LONE_UNITS if getattr(self, f"vector_{unit}")]
        if self.lane_partitions > 1 and alone:
            raise ValueError(f"lane_partitions must be 1 with {', '.join(alone)}, not {self.lane_partitions!r}")

    @property
    def named(self) -> dict[str, int]:
        """The parameters that reports name: those of arrays, engines and ports; of the others what is not as usual."""
        usual = {field.name: field.default for field in fields(self)}
        return {
            name: value for name, value in asdict(self).items() if name in self.ALWAYS_NAMED or value != usual[name]
        }

    @property
    def partitions(self) -> int:
        """Partitions of SBUF, and lanes of the vector and scalar engines; PSUM has `columns` of them."""
        return max(self.rows, self.columns)

    @property
    def matmul_formats(self) -> tuple[Format, ...]:
        """Formats that the array multiplies."""
        return matmul_formats(self.significand_bits)

    @property
    def quadrant(self) -> int:
        """Partitions of a quadrant, where an access may start; all of them if they do not divide by four."""
        return self.partitions if self.partitions % 4 else self.partitions // 4

    @property
    def load_bytes(self) -> int:
        """Bytes of a partition that a load step of the array reads: `LOAD_COLUMNS` elements of the widest format, of
        which an array of two columns wants two."""
        return 4 * (LOAD_COLUMNS if self.columns > 2 else 2)

    @property
    def psum_bank(self) -> int:
        """Bytes of a bank of PSUM per partition."""
        return 4 * self.psum_words

    @property
    def psum_bytes(self) -> int:
        """Bytes of PSUM per partition."""
        return PSUM_BANKS * self.psum_bank

    @property
    def vector_units(self) -> frozenset[str]:
        """The :data:`VECTOR_UNITS` that vector lanes have."""
        return frozenset(unit for unit in VECTOR_UNITS if getattr(self, f"vector_{unit}"))

    @property
    def scalar_units(self) -> frozenset[str]:
        """The :data:`SCALAR_UNITS` that activation lanes have."""
        return frozenset(unit for unit in SCALAR_UNITS if getattr(self, f"scalar_{unit}"))

    def with_overrides(self, **overrides: int | None) -> "Config":
        """Return a copy with the parameters that are not None replaced."""
        return replace(self, **{name: value for name, value in overrides.items() if value is not None})


_BOARD = Config(
    rows=2, columns=2, mac_latency=5, add_latency=7, vector_latency=6, scalar_depth=2, dma_engines=1, hbm_bytes=8,
    cast_lanes=1, cast_latency=3, semaphores=32, records_ahead=1, sbuf_banks=2, psum_banks=2, line_bytes=8,
    local_bytes=16 * 1024, edge_latency=3, port_latency=1, lane_partitions=2,
    **{f"vector_{unit}": 0 for unit in VECTOR_UNITS}, **{f"scalar_{unit}": 0 for unit in SCALAR_UNITS},
)  # fmt: skip
"""What an ECP5-85F has the logic for, in as many stages as a clock of 40 MHz takes."""

PRESETS: dict[str, Config] = {
    "nano": _BOARD.with_overrides(sbuf_bytes=8 * 1024, psum_words=64, counters=Counters.NONE),
    "fpga": _BOARD.with_overrides(sbuf_bytes=16 * 1024, psum_words=128, counters=Counters.NONE),
    "tiny": Config(rows=4, columns=4),
    "small": Config(rows=16, columns=16, dma_engines=4, hbm_bytes=32),
    "medium": Config(rows=32, columns=32, dma_engines=4, hbm_bytes=64),
    "large": Config(rows=64, columns=64, dma_engines=8, hbm_ports=2, hbm_bytes=64),
    "full": Config(rows=128, columns=128, dma_engines=16, hbm_ports=4, hbm_bytes=64),
}
"""Named configurations; `full` is the NeuronCore-v2's array and its 16 DMA engines. Its HBM ports carry 256 bytes a
cycle, between what its DMA engines are published to move (272 GB/s, 194 bytes a cycle at 1.4 GHz) and what its HBM is
(410 GB/s, 293 bytes a cycle); the smaller ones have bandwidth in proportion to their arrays, or a little more. `nano`
and `fpga` are the smallest core, and fit a board: `fpga` is what an ECP5-85F can be routed with,
`nano` has half its memory."""


def preset_named(name: str) -> Config:
    """Return the preset called `name`.

    Raises:
        ValueError: if there is none; the message lists those that exist.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(f"PRESET must be one of {', '.join(PRESETS)}, not {name!r}") from None
