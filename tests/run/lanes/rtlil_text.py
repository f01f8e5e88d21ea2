"""Text of RTLIL: constants, concatenations, cells and memories."""

from collections.abc import Iterable, Mapping

__all__ = ["cell_lines", "concatenation", "constant", "memory_lines"]


def constant(value: int, width: int) -> str:
    return f"{width}'{value:0{width}b}"


def repeated(bit: int, count: int) -> str:
    """Return a constant with `count` equal bits; Yosys has a zero for none."""
    return f"{max(count, 1)}'{str(bit) * count or '0'}"


def concatenation(parts: Iterable[str]) -> str:
    """Return parts concatenated, the first one lowest."""
    return "{ " + " ".join(reversed(list(parts))) + " }"


def cell_lines(kind: str, name: str, parameters: Mapping[str, object], connections: Mapping[str, str]) -> list[str]:
    lines = [f"  parameter \\{parameter} {value}" for parameter, value in parameters.items()]
    return [
        f"cell {kind} {name}",
        *lines,
        *(f"  connect \\{port} {value}" for port, value in connections.items()),
        "end",
    ]


def memory_lines(
    name: str, connections: Mapping[str, str], *, size: int, width: int, address: int, reads: int, writes: int, **other
) -> list[str]:
    """Return a memory with ports at rising edges, without resets; `other`: further or different parameters."""
    ports = {"RD": reads, "WR": writes}
    flags = ("RD_WIDE_CONTINUATION", "RD_CE_OVER_SRST", "WR_WIDE_CONTINUATION")
    parameters = {
        **{"MEMID": f'"\\{name}"', "SIZE": size, "OFFSET": 0, "ABITS": address, "WIDTH": width},
        **{f"{side}_PORTS": count for side, count in ports.items()},
        **{f"{side}_CLK_{what}": repeated(1, n) for side, n in ports.items() for what in ("ENABLE", "POLARITY")},
        **{flag: repeated(0, ports[flag[:2]]) for flag in flags},
        **dict.fromkeys(("RD_TRANSPARENCY_MASK", "RD_COLLISION_X_MASK"), repeated(0, reads * writes)),
        **dict.fromkeys(("RD_ARST_VALUE", "RD_SRST_VALUE"), repeated(0, reads * width)),
        "WR_PRIORITY_MASK": repeated(0, writes**2),
    }
    clocks = {f"{side}_CLK": concatenation(["\\clk"] * count) for side, count in ports.items()}
    resets = dict.fromkeys(("RD_ARST", "RD_SRST"), repeated(0, reads))
    return cell_lines("$mem_v2", name, parameters | other, clocks | resets | connections)
