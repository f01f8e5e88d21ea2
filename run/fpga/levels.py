"""Deepest logic of a netlist: a substitute for the critical path where no tool can place the netlist.

Each combinational cell is a level; a carry chain of any length is one level.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from neuroncore_rtl.run.fpga.synthesis import Netlist

__all__ = ["deepest"]

LOGIC = ("LUT", "MUXF", "INV", "CARRY", "DSP48E2")
"""Prefixes of the types of combinational cells."""

_REGISTERS = ("AREG", "BREG", "MREG", "PREG")
"""Parameters of a multiplier with the number of its registers."""


def deepest(netlist: Netlist) -> dict[str, Any]:
    """Return the longest path between registers, memories, ports and black boxes.

    Returns:
        Its `levels`, and the signals at `start` and `end`, None without a name in the source.
    """
    cells = netlist.module["cells"]
    drivers: dict[Any, Any] = {
        bit: name for name, cell in cells.items() if _is_logic(cell) for bit in _bits(cell, "output")
    }
    depth: dict[Any, int] = {}
    before: dict[str, int | None] = {}
    for name in _in_order(cells, drivers):
        depth[name], before[name] = 0, None
        for port, bit in _inputs(cells[name]):
            driver = drivers.get(bit)
            levels = depth.get(driver, 0)  # 0 for a cell of a loop
            levels += not (driver is not None and port == "CI" and cells[driver]["type"].startswith("CARRY"))
            if levels > depth[name]:
                depth[name], before[name] = levels, bit
    if not depth:
        return {"levels": 0, "start": None, "end": None}
    last = max(depth, key=depth.__getitem__)
    start, name = None, last
    while name is not None:
        start = before[name]
        name = drivers.get(start)
    reached = set(_bits(cells[last], "output"))
    ends = (cell for cell in cells.values() if not _is_logic(cell) and reached & set(cell["connections"].get("D", [])))
    registers = (cell["connections"]["Q"][0] for cell in ends if "Q" in cell["connections"])
    names = cast(Mapping[Any, Any], netlist.signals)
    end = next((bit for bit in (*registers, *reached) if bit in names), None)
    return {"levels": depth[last], "start": names.get(start), "end": names.get(end)}


def _is_logic(cell: Mapping) -> bool:
    if not cell["type"].startswith(LOGIC):
        return False
    return not any(_number(cell["parameters"].get(name, "0")) for name in _REGISTERS)


def _number(text: object) -> int:
    return int(str(text), 2)


def _bits(cell: Mapping, direction: str) -> Iterator[int]:
    """Yield the bits at the outputs, or the inputs, of a cell."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            yield from (bit for bit in bits if isinstance(bit, int))


def _inputs(cell: Mapping) -> Iterator[tuple[str, int]]:
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == "input":
            yield from ((port, bit) for bit in bits if isinstance(bit, int))


def _in_order(cells: Mapping[str, Mapping], drivers: Mapping[int, str]) -> Iterator[str]:
    """Yield the combinational cells, each after the cells that drive it."""
    seen: set[str] = set()
    for root in dict.fromkeys(drivers.values()):
        todo = [(root, iter(_bits(cells[root], "input")))] if root not in seen else []
        seen.add(root)
        while todo:
            name, bits = todo[-1]
            for bit in bits:
                driver = drivers.get(bit)
                if driver is not None and driver not in seen:
                    seen.add(driver)
                    todo.append((driver, iter(_bits(cells[driver], "input"))))
                    break
            else:
                yield name
                todo.pop()
