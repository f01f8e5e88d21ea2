"""Rules of the collective engine's instruction.

Only the fields that the kind uses are checked:

- op, narrow and stochastic: reductions.
- src_address: all kinds except RECEIVE; BROADCAST only at the root.
- dst_address: all kinds except SEND.
- pitch: kinds with one block of src or dst per rank.
- root: BROADCAST, SEND and RECEIVE.
- BARRIER: only the group and the rank.
"""

from collections.abc import Iterator

from neuroncore_rtl.spec.isa.collective.kind import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    REDUCTION_KINDS,
    ROOTED,
    CollectiveKind,
    CollectiveType,
    ReduceOp,
    element_bytes,
    uses_dst,
    uses_src,
)
from neuroncore_rtl.spec.isa.collective.layout import COLLECTIVE
from neuroncore_rtl.spec.isa.dma import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.rule import Broken, Rule

__all__ = ["COLLECTIVE_ALIGNMENT", "COLLECTIVE_RULES", "collective_violation"]

COLLECTIVE_ALIGNMENT = 64
"""Alignment of addresses and pitch in bytes."""

COLLECTIVE_RULES = frozenset({Rule.OPCODE, Rule.FORMAT, Rule.SHAPE, Rule.ALIGNMENT, Rule.RANGE, Rule.STATE})
"""Rules that a collective can break."""

_K = CollectiveKind


def collective_violation(values: dict[str, int], core: int, cores: int) -> Broken | None:
    """Return the lowest broken rule with a message, or None, on a core of `cores`."""
    if values["opcode"] != COLLECTIVE:
        return Rule.OPCODE, f"opcode must be {COLLECTIVE}, not {values['opcode']}"
    if values["kind"] not in set(CollectiveKind):
        return Rule.OPCODE, f"kind must be one of {_names(CollectiveKind)}, not {values['kind']}"
    for rule, judge in _JUDGES:
        message = next(judge(values, core, cores), None)
        if message is not None:
            return rule, message
    return None


def _format(values: dict[str, int], core: int, cores: int) -> Iterator[str]:
    if values["kind"] != _K.BARRIER and values["dtype"] not in set(CollectiveType):
        yield f"dtype must be one of {_names(CollectiveType)}, not {values['dtype']}"
    if values["kind"] not in REDUCTION_KINDS:
        return
    if values["op"] not in set(ReduceOp):
        yield f"op must be one of {_names(ReduceOp)}, not {values['op']}"
    for name in ("narrow", "stochastic"):
        if values[name] and values["dtype"] != CollectiveType.BF16:
            yield f"{name} must be 0 for {CollectiveType(values['dtype']).name}, not {values[name]}"


def _shape(values: dict[str, int], core: int, cores: int) -> Iterator[str]:
    if values["kind"] != _K.BARRIER and values["count"] < 1:
        yield f"count must be at least 1, not {values['count']}"
    if values["ranks"] < 1:
        yield f"ranks must be at least 2, not {values['ranks'] + 1}"


def _places(values: dict[str, int]) -> Iterator[tuple[str, int]]:
    for name, used, kinds in (("src", uses_src, BLOCKS_OF_SRC), ("dst", uses_dst, BLOCKS_OF_DST)):
        if used(values):
            yield f"{name}_address", values["ranks"] + 1 if values["kind"] in kinds else 1


def _alignment(values: dict[str, int], core: int, cores: int) -> Iterator[str]:
    names = [name for name, _ in _places(values)]
    if values["kind"] in BLOCKS_OF_SRC | BLOCKS_OF_DST:
        names.append("pitch")
    for name in names:
        if values[name] % COLLECTIVE_ALIGNMENT:
            yield f"{name} must be a multiple of {COLLECTIVE_ALIGNMENT}, not {values[name]}"


def _range(values: dict[str, int], core: int, cores: int) -> Iterator[str]:
    block = values["count"] * element_bytes(values["dtype"])
    if values["kind"] in BLOCKS_OF_SRC | BLOCKS_OF_DST and values["pitch"] < block:
        yield f"pitch must be at least the {block} bytes of a block, not {values['pitch']}"
    for name, blocks in _places(values):
        end = values[name] + (blocks - 1) * values["pitch"] + block
        if end > 1 << HBM_ADDRESS_BITS:
            yield f"the bytes from {name} on must end at {1 << HBM_ADDRESS_BITS}, not at {end}"


def _state(values: dict[str, int], core: int, cores: int) -> Iterator[str]:
    ranks, base, stride, rank = values["ranks"] + 1, values["base"], values["stride"], values["rank"]
    if stride == 0:
        yield "stride must not be 0"
    last = base + (ranks - 1) * stride
    if not (0 <= base < cores and 0 <= last < cores):
        yield f"the group's cores must lie from 0 to {cores - 1}, not from {base} to {last}"
    if rank >= ranks:
        yield f"rank must be from 0 to {ranks - 1}, not {rank}"
    if base + rank * stride != core:
        yield f"rank {rank} must be the rank of core {core}, not of core {base + rank * stride}"
    if values["kind"] in ROOTED and values["root"] >= ranks:
        yield f"root must be from 0 to {ranks - 1}, not {values['root']}"
    if values["kind"] in (_K.SEND, _K.RECEIVE) and values["root"] == rank:
        yield f"root must be a rank other than the executing one, not {rank}"


def _names(kind) -> str:
    return ", ".join(member.name for member in kind)


_JUDGES = (
    (Rule.FORMAT, _format),
    (Rule.SHAPE, _shape),
    (Rule.ALIGNMENT, _alignment),
    (Rule.RANGE, _range),
    (Rule.STATE, _state),
)
