"""Table of a machine's parameters: group, meaning, values and default of each field of `spec.config.Config`."""

import inspect
import re
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum

from neuroncore_rtl.spec.config import SCALAR_UNITS, VECTOR_UNITS, Config

__all__ = ["PARAMETER_GROUPS", "Parameter", "ParameterGroup", "parameters", "parse_arguments"]


class ParameterGroup(StrEnum):
    """Groups of parameters, in the order of help texts."""

    ARRAY = "array"
    VECTOR = "vector engine"
    SCALAR = "scalar engine"
    MEMORY = "memory"
    DMA = "DMA"
    LINKS = "links"
    QUEUES = "queues"
    DEBUG = "simulation/debug"


PARAMETER_GROUPS: dict[ParameterGroup, tuple[str, ...]] = {
    ParameterGroup.ARRAY: ("rows", "columns", "mac_latency", "significand_bits", "add_latency", "edge_latency"),
    ParameterGroup.VECTOR: ("vector_latency", *(f"vector_{unit}" for unit in VECTOR_UNITS), "lane_partitions"),
    ParameterGroup.SCALAR: ("scalar_depth", *(f"scalar_{unit}" for unit in SCALAR_UNITS)),
    ParameterGroup.MEMORY: (
        "hbm_ports", "hbm_bytes", "sbuf_bytes", "sbuf_banks", "line_bytes", "psum_words", "psum_banks", "local_bytes",
        "port_latency",
    ),
    ParameterGroup.DMA: ("dma_engines", "dma_beats", "cast_lanes", "cast_latency"),
    ParameterGroup.LINKS: ("cores",),
    ParameterGroup.QUEUES: ("semaphores", "records_ahead"),
    ParameterGroup.DEBUG: ("counters",),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a machine.

    Arguments:
        name: field of `Config`.
        group: part of the machine.
        sentence: meaning, unit and values; ends with a full stop.
        low, high: smallest and largest value.
        choices: allowed values if not every integer of the range is allowed, otherwise empty.
        default: value in each preset that gives no other value; None if every preset must give a value.
    """

    name: str
    group: ParameterGroup
    sentence: str
    low: int
    high: int
    choices: tuple[int, ...]
    default: int | None


def parameters() -> dict[str, Parameter]:
    """Return all parameters by name, in the order of `Config`'s fields.

    Raises:
        ValueError: if these fields, the entries of `Config`'s docstring and the names in `PARAMETER_GROUPS` differ.
    """
    group_of = {name: group for group, names in PARAMETER_GROUPS.items() for name in names}
    sentences = parse_arguments(inspect.getdoc(Config) or "")
    defaults = {field.name: None if field.default is MISSING else int(field.default) for field in fields(Config)}
    for place, names in (("the docstring of Config", set(sentences)), ("PARAMETER_GROUPS", set(group_of))):
        if different := names ^ set(defaults):
            raise ValueError(f"{place} must name the fields of Config; different: {', '.join(sorted(different))}")
    return {
        name: Parameter(
            name=name,
            group=group_of[name],
            sentence=sentences[name],
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
