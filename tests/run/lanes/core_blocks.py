"""Blocks of lanes in the core of preset tiny."""

from dataclasses import dataclass
from functools import cache

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary
from neuroncore_rtl.spec.config import PRESETS

__all__ = ["KINDS", "Block", "core_blocks"]

KINDS = ("activation_lanes", "datapath", "psum_partitions", "sbuf_partitions", "vector_lanes")
"""Prefixes of the blocks' names."""


@dataclass(frozen=True)
class Block:
    name: str
    component: wiring.Component
    of: tuple[str, ...]


@cache
def core_blocks() -> dict[str, Block]:
    library = ModuleLibrary()
    pending, met = {"core": Core(PRESETS["tiny"])}, set()
    while pending:
        name, component = pending.popitem()
        met.add(name)
        Fragment.get(component, library)
        pending.update((n, c) for n, c in library.components.items() if n not in met)
    found = [Block(name, library.components[name], of) for name, of in library.blocks.items()]
    return {next((kind for kind in KINDS if b.name.startswith(kind)), b.name): b for b in found}
