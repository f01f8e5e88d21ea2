"""Parameters of a machine: one frozen, validated record, and named presets."""

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
"""PSUM banks per partition; a bank can hold one open accumulation group (NeuronCore-v2: 16 KiB in 8 banks)."""

LINE_BYTES = 64
"""Maximum bytes of an SBUF line and of an HBM beat; programs place every tensor in HBM at a multiple of it."""

SEMAPHORE_COUNT = 256
"""Semaphores that a record can name, as many as NeuronCore-v2 has; 16 bits each."""

VECTOR_UNITS = ("division", "power", "search", "statistics", "random")
"""Optional units of a vector lane."""

LONE_UNITS = ("division", "power", "search", "statistics")
"""Optional units that need `lane_partitions` = 1: they are iterative or keep state per partition."""

SCALAR_UNITS = ("trigonometry", "random")
"""Optional units of an activation lane."""


class Counters(IntEnum):
    """Event counters that a core has; see `Config`."""

    NONE = 0
    QUEUES = 1
    ALL = 2


@dataclass(frozen=True, kw_only=True)
class Config:
    """Parameters of one core.

    `spec.parameters` reads each entry below, one self-contained sentence, for help texts.

    Arguments:
        rows: height of the array in processing elements, along K, with one SBUF partition per row; 2 to 1024 (so that
            an INT8 column sum stays below 2**24).
        columns: width of the array, along M, with one PSUM partition per column; 2 to 1024.
        mac_latency: pipeline stages of a multiply-accumulate, in cycles; 1 to 5; a sum takes rows * mac_latency cycles
            through the array.
        significand_bits: width of the array's multipliers in significand bits; 12 multiplies every matmul format, 8
            only BF16, FP8 and INT8.
        add_latency: pipeline stages of the PSUM adder, in cycles; 1 to 7.
        vector_latency: pipeline stages of an ALU in the vector lanes, in cycles; 1 to 6; a reduction takes that many
            cycles per element and a scan twice as many (above 1, widening and casts are pipelined too).
        vector_division: divider in the vector lanes; 0 removes it and makes DIVIDE, MOD, FMOD, RECIPROCAL and BN_AGGR
            illegal.
        vector_power: power unit in the vector lanes; 0 removes it and makes POWER illegal.
        vector_search: search unit in the vector lanes; 0 removes it and makes MAX8, FIND_INDEX8 and MATCH_REPLACE8
            illegal.
        vector_statistics: statistics unit in the vector lanes; 0 removes it and makes BN_STATS and BN_AGGR illegal.
        vector_random: random-bit unit in the vector lanes; 0 removes it and makes DROPOUT and stochastic rounding in
            the vector engine illegal.
        scalar_depth: pipeline depth of the activation lanes; 1 takes 23 cycles per element, 2 takes 44 cycles; one
            element enters per cycle.
        scalar_trigonometry: argument reduction in the activation lanes; 0 removes it and makes SIN and COS illegal.
        scalar_random: random-bit unit in the activation lanes; 0 removes it and makes stochastic rounding in the scalar
            engine illegal.
        dma_engines: number of DMA engines, each with its own queue; 1 to 16; engine i uses HBM port i modulo hbm_ports.
        hbm_ports: number of AXI4 ports to HBM, each with hbm_bytes per cycle; 1 to 4, at most dma_engines.
        hbm_bytes: width of an HBM port in bytes per beat; 8, 16, 32 or 64.
        cores: number of cores in the instance; 1 to 128; more than 1 add a collective engine and links to every core.
        sbuf_bytes: SBUF capacity in bytes per partition; 1 KiB to 192 KiB, a multiple of two lines of every bank
            (NeuronCore-v2: 192 KiB).
        sbuf_banks: number of SBUF banks per partition, which is the SBUF bandwidth in reads and in writes per cycle; 2,
            4 or 8, interleaved by lines; a bank serves one read and one write per cycle.
        line_bytes: line size of SBUF in bytes, which is the width of a bank in one partition; 8, 16, 32 or 64, at least
            hbm_bytes, and at least 16 if the array has more than two columns.
        psum_words: FP32 words per PSUM bank and partition, which limit the length of a moving tile; a power of two from
            16 to 512 (NeuronCore-v2: 512).
        psum_banks: number of memories per PSUM partition that hold its 8 banks (bank b is in memory b modulo
            psum_banks); 2, 4 or 8; a memory reads one word and writes one word per cycle.
        local_bytes: bytes of the controller's local memory for program and data; 16 KiB, 32 KiB or 64 KiB.
        dma_beats: read buffer of a DMA engine in HBM beats, including requested ones; 32, 64 or 128; it hides an HBM
            latency of that many cycles.
        cast_lanes: elements that a DMA engine casts per cycle; 1, 2 or 4.
        cast_latency: pipeline stages of the rounding in a DMA cast, in cycles; 1 to 4 (above 1, widening has three
            stages instead of one).
        semaphores: number of 16-bit semaphores; a power of two from 16 to 256; below 256 the upper bits of a
            semaphore's number are ignored.
        records_ahead: maximum number of records that a queue fetches before their turn; 1 to 8, further limited per
            engine to 8 for tensor, 4 for vector and scalar, 2 for DMA and collective.
        counters: event counters in hardware; 0 builds none (they read as 0), 1 those of the queues, which the
            controller can read too, 2 also those of engines and memories.
        edge_latency: pipeline stages from a memory word to its operands at the array's edge, in cycles; 1 to 3.
        port_latency: pipeline registers from the queues to the engines, and from the engines to the memory ports and
            the semaphores; 0 or 1.
        lane_partitions: number of partitions that one lane of the vector or scalar engine serves in turn; 1, 2 or 4, a
            divisor of the number of partitions; a value n needs 1/n of the lanes and takes n cycles per step; above 1,
            vector_division, vector_power, vector_search and vector_statistics must be 0.
        vector_speed: clock of the vector engine in percent of the machine's one clock; 1 to 100; below 100 an element
            takes 100 / vector_speed cycles, or a multiple of it by opcode (NeuronCore-v2: 40).
        scalar_speed: clock of the scalar engine in percent of the machine's one clock; 1 to 100; below 100 an element
            takes 100 / scalar_speed cycles (NeuronCore-v2: 50).
        gpsimd_speed: clock, in percent of the machine's one clock, at which the vector engine executes IOTA and
            AFFINE_SELECT, the instructions of NeuronCore-v2's GpSimd; 1 to 100 (NeuronCore-v2: 50).
        gpsimd_start: cycles of that clock that IOTA and AFFINE_SELECT take besides their elements; 0 to 255
            (NeuronCore-v2: 150).
        least_interval: minimum cycles of an engine's own clock from one instruction to the next, in the tensor, vector
            and scalar engine, and cycles that reading a running result takes; 0 to 255 (NeuronCore-v2: 64).
        access_cycles: cycles of an engine's own clock that an instruction of the vector or scalar engine takes besides
            its elements, except IOTA and AFFINE_SELECT; 0 to 255 (NeuronCore-v2: 100).
        load_interval: minimum cycles from one step of a LoadStationary, four columns, to the next; 0 to 255
            (NeuronCore-v2: 128 columns in 256 cycles).
        swap_cycles: idle cycles of the array between the last column with old weights and the first one with new
            weights; 0 to 255.
        result_latency: cycles from the last write of an instruction of the tensor, vector or scalar engine to its
            retirement, which instructions that read the result wait for; 0 to 1023 (NeuronCore-v2: 189 ns from one
            short instruction to the next that depends on it).
        dma_start: cycles from the issue of a copy to its start in the DMA engine, which overlap those of other copies;
            0 to 8191 (NeuronCore-v2: 1.3 us).
        packet_interval: minimum cycles from one packet of a copy in HBM, the runs of contiguous bytes of one index of
            its outermost dimension, at most 64, to the next packet that any DMA engine reads, and the same for writes;
            0 to 255 (NeuronCore-v2: 9.3 ns, 149 ns for each of 16 DMA engines).
        hbm_rate: maximum bytes per cycle that the core reads and writes in HBM, a property of the memory around it,
            which the variable BANDWIDTH overrides; 0 to 1024, 0 for no limit besides the width of the ports.
        ring_rate: maximum bytes per cycle that each of the two channels of the collective engine sends; 0 to 64, 0 for
            no limit besides the links (NeuronCore-v2: 27 GB/s, a DMA engine).
        clock_mhz: frequency of the machine's clock in MHz, with which reports give microseconds beside cycles; 0 to
            10000, 0 for cycles only.
        launch_cycles: cycles of a run before its first and after its last instruction, when the runtime starts the
            engines and clears their semaphores; reports with microseconds add them; 0 to 131071.
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
    vector_speed: int = 100
    scalar_speed: int = 100
    gpsimd_speed: int = 100
    gpsimd_start: int = 0
    least_interval: int = 0
    access_cycles: int = 0
    load_interval: int = 0
    swap_cycles: int = 0
    result_latency: int = 0
    dma_start: int = 0
    packet_interval: int = 0
    hbm_rate: int = 0
    ring_rate: int = 0
    clock_mhz: int = 0
    launch_cycles: int = 0

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
        **{f"{engine}_speed": (1, 100) for engine in ("vector", "scalar", "gpsimd")},
        "gpsimd_start": (0, 255),
        "least_interval": (0, 255),
        "access_cycles": (0, 255),
        "load_interval": (0, 255),
        "swap_cycles": (0, 255),
        "result_latency": (0, 1023),
        "dma_start": (0, 8191),
        "packet_interval": (0, 255),
        "hbm_rate": (0, 1024),
        "ring_rate": (0, 64),
        "clock_mhz": (0, 10_000),
        "launch_cycles": (0, 131_071),
    }
    ALWAYS_NAMED: ClassVar = (
        "rows", "columns", "mac_latency", "add_latency", "dma_engines", "hbm_ports", "hbm_bytes", "cores",
    )  # fmt: skip
    POWERS_OF_TWO: ClassVar = (
        "hbm_bytes", "sbuf_banks", "line_bytes", "psum_words", "psum_banks", "local_bytes", "dma_beats", "cast_lanes",
        "semaphores", "lane_partitions",
    )  # fmt: skip
    SIGNIFICAND_BITS: ClassVar = (8, 12)
    RATES: ClassVar = (
        "vector_speed", "scalar_speed", "gpsimd_speed", "gpsimd_start", "least_interval", "access_cycles",
        "load_interval", "swap_cycles", "result_latency", "dma_start", "packet_interval", "hbm_rate", "ring_rate",
        "clock_mhz", "launch_cycles",
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
        if self.significand_bits not in self.SIGNIFICAND_BITS:
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
        if self.partitions % self.lane_partitions:
            rule = f"lane_partitions must divide the larger of rows and columns ({self.partitions})"
            raise ValueError(f"{rule}, not {self.lane_partitions!r}")
        alone = [f"vector_{unit}" for unit in LONE_UNITS if getattr(self, f"vector_{unit}")]
        if self.lane_partitions > 1 and alone:
            raise ValueError(f"lane_partitions must be 1 with {', '.join(alone)}, not {self.lane_partitions!r}")

    @property
    def named(self) -> dict[str, int]:
        """Parameters in `ALWAYS_NAMED`, and all that differ from their default, for reports."""
        usual = {field.name: field.default for field in fields(self)}
        return {
            name: value for name, value in asdict(self).items() if name in self.ALWAYS_NAMED or value != usual[name]
        }

    @property
    def rates(self) -> dict[str, int]:
        """Parameters in `RATES` that differ from their default; empty if each unit runs at the machine's clock."""
        return {name: value for name, value in self.named.items() if name in self.RATES}

    def microseconds(self, cycles: float) -> float | None:
        """Return the time of so many cycles; None without `clock_mhz`."""
        return cycles / self.clock_mhz if self.clock_mhz else None

    def microseconds_text(self, cycles: float) -> str:
        """Return the time of a run of so many cycles, and the time with its start and end, as reports show it."""
        text = f"{cycles / self.clock_mhz:,.2f} at {self.clock_mhz:,} MHz"
        whole = f"{(cycles + self.launch_cycles) / self.clock_mhz:,.2f} with the start and the end of a run"
        return f"{text}; {whole}" if self.launch_cycles else text

    @property
    def partitions(self) -> int:
        """Number of SBUF partitions; PSUM has `columns` partitions."""
        return max(self.rows, self.columns)

    @property
    def matmul_formats(self) -> tuple[Format, ...]:
        """Formats that the array multiplies."""
        return matmul_formats(self.significand_bits)

    @property
    def quadrant(self) -> int:
        """Number of partitions in a quadrant: a quarter of all, or all if their number is not a multiple of four."""
        return self.partitions if self.partitions % 4 else self.partitions // 4

    @property
    def load_bytes(self) -> int:
        """Bytes per partition that a weight-load step of the array reads, in the widest format."""
        return 4 * (LOAD_COLUMNS if self.columns > 2 else 2)

    @property
    def psum_bank(self) -> int:
        """Bytes of a PSUM bank per partition."""
        return 4 * self.psum_words

    @property
    def psum_bytes(self) -> int:
        """Bytes of PSUM per partition."""
        return PSUM_BANKS * self.psum_bank

    @property
    def vector_units(self) -> frozenset[str]:
        """Names of the vector lanes' optional units that are built."""
        return frozenset(unit for unit in VECTOR_UNITS if getattr(self, f"vector_{unit}"))

    @property
    def scalar_units(self) -> frozenset[str]:
        """Names of the activation lanes' optional units that are built."""
        return frozenset(unit for unit in SCALAR_UNITS if getattr(self, f"scalar_{unit}"))

    def with_overrides(self, **overrides: int | None) -> "Config":
        """Return a copy with the given parameters replaced, except those that are None."""
        return replace(self, **{name: value for name, value in overrides.items() if value is not None})


_BOARD = Config(
    rows=2, columns=2, mac_latency=5, add_latency=7, vector_latency=6, scalar_depth=2, dma_engines=1, hbm_bytes=8,
    cast_lanes=1, cast_latency=3, semaphores=32, records_ahead=1, sbuf_banks=2, psum_banks=2, line_bytes=8,
    local_bytes=16 * 1024, edge_latency=3, port_latency=1, lane_partitions=2,
    **{f"vector_{unit}": 0 for unit in VECTOR_UNITS}, **{f"scalar_{unit}": 0 for unit in SCALAR_UNITS},
)  # fmt: skip
"""Machine that fits the logic of an ECP5-85F, with pipeline stages for a clock of 40 MHz."""

_FULL = Config(rows=128, columns=128, dma_engines=16, hbm_ports=4, hbm_bytes=64)

_NEURONCORE = _FULL.with_overrides(
    vector_speed=40, scalar_speed=50, gpsimd_speed=50, gpsimd_start=150, least_interval=64, access_cycles=100,
    load_interval=8, swap_cycles=64, result_latency=493, dma_start=3640, packet_interval=26, hbm_rate=97, ring_rate=10,
    clock_mhz=2800, launch_cycles=43512,
)  # fmt: skip
"""Machine with the clocks, the DMA start and the HBM of a NeuronCore-v2; docs/rates.md has the source of each value."""

PRESETS: dict[str, Config] = {
    "nano": _BOARD.with_overrides(sbuf_bytes=8 * 1024, psum_words=64, counters=Counters.NONE),
    "fpga": _BOARD.with_overrides(sbuf_bytes=16 * 1024, psum_words=128, counters=Counters.NONE),
    "tiny": Config(rows=4, columns=4),
    "small": Config(rows=16, columns=16, dma_engines=4, hbm_bytes=32),
    "medium": Config(rows=32, columns=32, dma_engines=4, hbm_bytes=64),
    "large": Config(rows=64, columns=64, dma_engines=8, hbm_ports=2, hbm_bytes=64),
    "full": _FULL,
    **dict.fromkeys(("trainium1", "inferentia2"), _NEURONCORE),
}
"""Named configurations.

`full` has the array and the 16 DMA engines of a NeuronCore-v2. Its HBM ports carry 256 bytes per cycle, between the
published throughput of the DMA engines (272 GB/s, 194 bytes per cycle at 1.4 GHz) and of the HBM (410 GB/s, 293 bytes
per cycle). The smaller ones have at least the bandwidth in proportion to their arrays. `trainium1` and `inferentia2`
are `full` with the clocks of a NeuronCore-v2, the array's 2.8 GHz being the machine's. `fpga` is the largest that can
be routed on an ECP5-85F, `nano` has half its memory.
"""


def preset_named(name: str) -> Config:
    """Return the preset called `name`; raise ValueError if there is no such preset."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(f"PRESET must be one of {', '.join(PRESETS)}, not {name!r}") from None
