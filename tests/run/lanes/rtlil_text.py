"""Text of RTLIL: constants, concatenations, cells and memories; and modules as Yosys reads them."""

import json
from collections.abc import Iterable, Mapping

from neuroncore_rtl.hdl.verilog.yosys import run_yosys

__all__ = ["cell_lines", "concatenation", "constant", "constants", "memory_lines", "read_modules"]


def read_modules(top: str, *texts: str) -> dict[str, dict]:
    """Return the modules of Yosys' JSON, by name."""
    script = "".join(f"read_rtlil <<rtlil\n{text}\nrtlil\n" for text in texts)
    return json.loads(run_yosys(f"{script}hierarchy -top {top}\nwrite_json\n"))["modules"]


def constant(value: int, width: int) -> str:
    return f"{width}'{value:0{width}b}"


def constants(values: Iterable[int], width: int) -> str:
    """Return constants concatenated, the first one lowest; Yosys has a zero for none."""
    text = "".join(f"{value:0{width}b}" for value in reversed(list(values))) or "0"
    return f"{len(text)}'{text}"


def concatenation(parts: Iterable[str]) -> str:
    """Return parts concatenated, the first one lowest."""
    return "{ " + " ".join(reversed(list(parts))) + " }"


def cell_lines(kind: str, name: str, parameters: Mapping[str, object], connections: Mapping[str, str]) -> list[str]:
    return [
        f"cell {kind} {name}",
        *(f"  parameter \\{parameter} {value}" for parameter, value in parameters.items()),
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
        **{f"{side}_CLK_{what}": constants([1] * n, 1) for side, n in ports.items() for what in ("ENABLE", "POLARITY")},
        **{flag: constants([0] * ports[flag[:2]], 1) for flag in flags},
        **dict.fromkeys(("RD_TRANSPARENCY_MASK", "RD_COLLISION_X_MASK"), constants([0] * (reads * writes), 1)),
        **dict.fromkeys(("RD_ARST_VALUE", "RD_SRST_VALUE"), constants([0] * reads, width)),
        "WR_PRIORITY_MASK": constants([0] * writes**2, 1),
    }
    clocks = {f"{side}_CLK": concatenation(["\\clk"] * count) for side, count in ports.items()}
    resets = dict.fromkeys(("RD_ARST", "RD_SRST"), constants([0] * reads, 1))
    return cell_lines("$mem_v2", name, parameters | other, clocks | resets | connections)
