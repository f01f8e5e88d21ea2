"""Random bits in the fields that an instruction does not use, so that hardware which looks at them is noticed."""

import numpy as np

from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_FIELDS
from neuroncore_rtl.spec.isa.legality import uses

__all__ = ["garbled"]


def garbled(rng: np.random.Generator, values: dict[str, int]) -> dict[str, int]:
    """Return an instruction's fields with random bits in those that it does not use."""
    unused = _unused(values)
    changed = dict(values)
    for name, width in ELEMENTWISE_FIELDS:
        if name in unused:
            bits = int.from_bytes(rng.bytes(8), "little") & ((1 << width) - 1)
            signed = name.startswith("index") or "step" in name
            changed[name] = bits - (bits >> (width - 1) << width) if signed else bits
    return changed


def _unused(values: dict[str, int]) -> frozenset[str]:
    """Return the fields that mean nothing in an instruction."""
    opcode, used = Opcode(values["opcode"]), uses(values)
    activates = opcode == Opcode.ACTIVATE
    random = values["stochastic"] or opcode == Opcode.DROPOUT
    unused = set()
    if "a" not in used:
        unused |= {name for name, _ in ELEMENTWISE_FIELDS if name.startswith("a_")}
    if not used & {"b", "result"}:
        unused |= {name for name, _ in ELEMENTWISE_FIELDS if name.startswith("b_")}
    for number in (0, 1):
        if f"s{number}" not in used:
            unused |= {f"pointer{number}", f"scalar{number}"}
        if f"op{number}" not in used:
            unused |= {f"op{number}", f"reverse{number}"}
    if opcode in (Opcode.AFFINE_SELECT, Opcode.TENSOR_REDUCE):
        unused |= {"reverse0"}
    if opcode == Opcode.TENSOR_SCALAR_REDUCE:
        unused |= {"reverse1"}
    if opcode == Opcode.TENSOR_TENSOR:
        unused |= {"reverse0"}
    for name, kept in (
        ("axes", opcode == Opcode.TENSOR_REDUCE),
        ("negate", opcode == Opcode.TENSOR_REDUCE),
        ("keep", opcode == Opcode.SELECT),
        ("function", activates),
        ("alpha", activates),
        ("sum_continue", activates),
        ("sum_store", activates),
        ("seed", random),
        ("stream", random),
    ):
        if not kept:
            unused.add(name)
    if not random and opcode not in (Opcode.IOTA, Opcode.AFFINE_SELECT):
        unused |= {"index", "index_partition", *(f"index_step{d}" for d in range(DIMENSIONS))}
    return frozenset(unused)
