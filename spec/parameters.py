"""Table of a machine's parameters: group, meaning, values, benefit and cost of each field of `spec.config.Config`."""

import inspect
import re
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum

from neuroncore_rtl.spec.config import SCALAR_UNITS, VECTOR_UNITS, Config

__all__ = ["PARAMETER_GROUPS", "TRADES", "Parameter", "ParameterGroup", "parameters", "parse_arguments"]


class ParameterGroup(StrEnum):
    """Groups of parameters, in the order of help texts."""

    ARRAY = "array"
    VECTOR = "vector engine"
    SCALAR = "scalar engine"
    RATES = "rates of the engines"
    MEMORY = "memory"
    DMA = "DMA"
    LINKS = "links"
    QUEUES = "queues"
    DEBUG = "simulation/debug"


PARAMETER_GROUPS: dict[ParameterGroup, tuple[str, ...]] = {
    ParameterGroup.ARRAY: ("rows", "columns", "mac_latency", "significand_bits", "add_latency", "edge_latency"),
    ParameterGroup.VECTOR: ("vector_latency", *(f"vector_{unit}" for unit in VECTOR_UNITS), "lane_partitions"),
    ParameterGroup.SCALAR: ("scalar_depth", *(f"scalar_{unit}" for unit in SCALAR_UNITS)),
    ParameterGroup.RATES: (
        "vector_speed", "scalar_speed", "gpsimd_speed", "gpsimd_start", "least_interval", "access_cycles",
        "load_interval", "swap_cycles", "result_latency",
    ),
    ParameterGroup.MEMORY: (
        "hbm_ports", "hbm_bytes", "sbuf_bytes", "sbuf_banks", "line_bytes", "psum_words", "psum_banks", "local_bytes",
        "port_latency", "hbm_rate",
    ),
    ParameterGroup.DMA: ("dma_engines", "dma_start", "packet_interval", "dma_beats", "cast_lanes", "cast_latency"),
    ParameterGroup.LINKS: ("cores", "ring_rate"),
    ParameterGroup.QUEUES: ("semaphores", "records_ahead"),
    ParameterGroup.DEBUG: ("counters", "clock_mhz", "launch_cycles"),
}  # fmt: skip


TRADES: dict[str, tuple[str, str]] = {
    "rows": (
        "more products per cycle: rows * columns of them",
        "a row of multipliers, an SBUF partition and its lanes each; rows * mac_latency cycles until the first sum",
    ),
    "columns": (
        "more products per cycle: rows * columns of them",
        "a column of multipliers and a PSUM partition each; columns / 4 cycles to load weights",
    ),
    "mac_latency": (
        "a faster clock: 112 instead of 29 MHz with 5 stages on an ECP5",
        "registers, and one cycle per row and stage in each product",
    ),
    "significand_bits": (
        "12: products of FP16, TF32 and FP32",
        "larger multipliers, and decoders of 502 instead of 133 LUT4 at the edge of the array",
    ),
    "add_latency": (
        "a faster clock: PSUM reaches 47 MHz with 4 stages, 30 with 2",
        "columns that accumulate in the same word are add_latency + 2 cycles apart",
    ),
    "edge_latency": ("a shorter path from SBUF to the array", "registers, and one cycle per stage in each product"),
    "vector_latency": (
        "a faster clock: a lane reaches 61 MHz with 6 stages and without optional units, 11.9 MHz with 1 and all units",
        "a reduction takes one cycle per element and stage, a scan two",
    ),
    "vector_division": ("division and remainders", "a divider in each lane; 8 cycles per element"),
    "vector_power": ("powers of elements", "a power unit in each lane; 14 cycles per element"),
    "vector_search": ("the eight largest elements of a row, and their positions", "a search unit in each lane"),
    "vector_statistics": ("mean and variance of a row in one instruction", "a statistics unit in each lane"),
    "vector_random": ("dropout and stochastic rounding", "a generator of random words in each lane"),
    "lane_partitions": (
        "fewer lanes: 2 saves 13,000 LUT places of an ECP5 with 2 partitions",
        "n cycles per step of vector and scalar engine",
    ),
    "scalar_depth": ("a faster clock: 52.5 MHz with 2, 22.2 with 1", "registers, and 21 cycles per instruction"),
    "scalar_trigonometry": ("sine and cosine", "7 multipliers in each lane"),
    "scalar_random": ("stochastic rounding of activations", "a generator of random words in each lane"),
    "vector_speed": (
        "100: one element per cycle; below 100 the time that the instructions take on a machine with separate clocks",
        "below 100 a counter in front of the vector engine's lanes",
    ),
    "scalar_speed": (
        "100: one element per cycle; below 100 the time that the instructions take on a machine with separate clocks",
        "below 100 a counter in front of the scalar engine's lanes",
    ),
    "gpsimd_speed": (
        "100: one element per cycle; below 100 the time that the instructions take on a machine with separate clocks",
        "none besides the counter of the vector engine",
    ),
    "gpsimd_start": (
        "the time of the software that executes IOTA and AFFINE_SELECT on NeuronCore-v2",
        "that time: the vector engine executes no other instruction meanwhile",
    ),
    "least_interval": (
        "the time of short instructions on NeuronCore-v2",
        "short instructions take that time; a counter in each engine",
    ),
    "access_cycles": (
        "the time in which NeuronCore-v2's vector and scalar engine start and end an instruction",
        "that time in each instruction of the vector and the scalar engine; none besides their counters",
    ),
    "load_interval": (
        "the rate at which the array of NeuronCore-v2 loads weights",
        "that time for each four columns of weights; a counter",
    ),
    "swap_cycles": (
        "the time that the array of NeuronCore-v2 takes between products with different weights",
        "that time in each product with new weights; a counter",
    ),
    "result_latency": (
        "the time until an instruction of NeuronCore-v2 can use the result of another one",
        "that time in each dependence; a delay line for each engine",
    ),
    "dma_start": (
        "the time until a copy begins on a machine that fetches descriptors",
        "that time in each copy; a FIFO of 16 instructions for each DMA engine",
    ),
    "packet_interval": (
        "the packets per time that the DMA engines of NeuronCore-v2 execute: copies with short rows are slow",
        "that time in each packet of a copy; two arbiters with counters, two gates in each DMA engine",
    ),
    "ring_rate": (
        "the rate of the DMA engines that move the data of NeuronCore-v2's collectives",
        "collectives take that time; a counter in each channel of the collective engine",
    ),
    "hbm_rate": ("the bandwidth of a real memory", "no hardware: the harness and the timing model slow HBM down"),
    "hbm_ports": ("HBM bandwidth: hbm_ports * hbm_bytes per cycle", "an AXI port and an SBUF line port each"),
    "hbm_bytes": ("HBM bandwidth, and a record in 128 / hbm_bytes beats", "wires and buffers of that width"),
    "sbuf_bytes": ("larger tiles, so less traffic to HBM", "block RAM in each partition"),
    "sbuf_banks": (
        "SBUF bandwidth, so fewer stalls of engines and DMA: 2 instead of 8 adds 4.3 % to the cycles of a softmax",
        "memories and selectors in each partition",
    ),
    "line_bytes": (
        "SBUF bandwidth of wide HBM ports; line_bytes must be at least hbm_bytes",
        "wider memories and selectors: 8 instead of 64 shortens the wires of preset fpga by a tenth",
    ),
    "psum_words": ("longer moving tiles, so fewer weight loads", "block RAM in each PSUM partition"),
    "psum_banks": (
        "PSUM bandwidth: fewer stalls of vector and scalar engine",
        "memories and selectors in each partition: 2 instead of 8 saves 2,100 LUT places of an ECP5",
    ),
    "local_bytes": ("longer control programs", "block RAM, twice"),
    "port_latency": ("a faster clock, as it cuts the slowest path", "one to four cycles per instruction and unit"),
    "dma_engines": ("more copies at the same time", "8,749 LUT places of an ECP5 each"),
    "dma_beats": ("full HBM bandwidth at a latency of up to that many cycles", "block RAM from 128 beats, LUTs at 32"),
    "cast_lanes": ("faster copies that change the format", "a converter each in every DMA engine"),
    "cast_latency": ("a faster clock", "registers, and one cycle per stage in each cast"),
    "cores": ("more cores, with collectives between them", "a complete core with its HBM each"),
    "semaphores": ("more dependences at the same time", "LUTs, a copy for each reader"),
    "records_ahead": (
        "short instructions without stalls: a record per 9 cycles with 8 in flight, per 19 with 4, per 37 with 2",
        "a buffer of records in each queue",
    ),
    "clock_mhz": ("times in microseconds", "no hardware: a factor in reports"),
    "launch_cycles": ("times that include the start and the end of a run", "no hardware: a term in reports"),
    "counters": ("reports of busy cycles, stalls and conflicts", "registers and adders in all units"),
}  # fmt: skip
"""Benefit and cost of a larger value of each parameter, or of the unit that it adds."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a machine.

    Arguments:
        name: field of `Config`.
        group: part of the machine.
        sentence: meaning, unit and values; ends with a full stop.
        benefit, cost: see `TRADES`.
        low, high: smallest and largest value.
        choices: allowed values if not every integer of the range is allowed, otherwise empty.
        default: value in each preset that gives no other value; None if every preset must give a value.
    """

    name: str
    group: ParameterGroup
    sentence: str
    benefit: str
    cost: str
    low: int
    high: int
    choices: tuple[int, ...]
    default: int | None


def parameters() -> dict[str, Parameter]:
    """Return all parameters by name, in the order of `Config`'s fields.

    Raises:
        ValueError: if these fields differ from the entries of `Config`'s docstring, or from the names in
            `PARAMETER_GROUPS` or `TRADES`.
    """
    group_of = {name: group for group, names in PARAMETER_GROUPS.items() for name in names}
    sentences = parse_arguments(inspect.getdoc(Config) or "")
    defaults = {field.name: None if field.default is MISSING else int(field.default) for field in fields(Config)}
    for place, names in (
        ("the docstring of Config", set(sentences)),
        ("PARAMETER_GROUPS", set(group_of)),
        ("TRADES", set(TRADES)),
    ):
        if different := names ^ set(defaults):
            raise ValueError(f"{place} must name the fields of Config; different: {', '.join(sorted(different))}")
    return {
        name: Parameter(
            name=name,
            group=group_of[name],
            sentence=sentences[name],
            benefit=TRADES[name][0],
            cost=TRADES[name][1],
            low=Config.RANGES[name][0],
            high=Config.RANGES[name][1],
            choices=_choices(name),
            default=default,
        )
        for name, default in defaults.items()
    }


def parse_arguments(docstring: str) -> dict[str, str]:
    """Return the text of each entry in the section `Arguments:` of a cleaned docstring, by name.

    Raises:
        ValueError: if a line is neither an entry nor a continuation, or a name occurs twice.
    """
    _, _, section = docstring.partition("\nArguments:\n")
    entries: dict[str, str] = {}
    name = ""
    for line in section.split("\n"):
        if not line.startswith("    "):
            break
        if entry := re.fullmatch(r" {4}(\w+): (\S.*)", line):
            name = entry[1]
            if name in entries:
                raise ValueError(f"duplicate entry {name}")
            entries[name] = entry[2].strip()
        elif name and re.match(r" {8}\S", line):
            entries[name] += f" {line.strip()}"
        else:
            raise ValueError(f"not an entry `name: text` or its continuation: {line!r}")
    return entries


def _choices(name: str) -> tuple[int, ...]:
    low, high = Config.RANGES[name]
    if name in Config.POWERS_OF_TWO:
        return tuple(1 << bit for bit in range(low.bit_length() - 1, high.bit_length()))
    return Config.SIGNIFICAND_BITS if name == "significand_bits" else ()
