"""A collective in words, for who looks at a timeline."""

from neuroncore_rtl.spec.isa.collective import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    REDUCTION_KINDS,
    ROOTED,
    Collective,
    CollectiveKind,
    CollectiveType,
    Group,
    element_bytes,
)

__all__ = ["description_of"]


def description_of(one: Collective) -> tuple[str, dict[str, object]]:
    """Return what a slice is called, and what is told of it."""
    name = one.kind.name.lower()
    args: dict[str, object] = {"kind": name, "group": _cores(one.group), "rank": one.rank}
    if one.kind == CollectiveKind.BARRIER:
        return name, args
    dtype = CollectiveType(one.dtype)
    blocks = one.group.ranks if one.kind in BLOCKS_OF_SRC | BLOCKS_OF_DST else 1
    size = blocks * one.count * element_bytes(dtype)
    args |= {"type": dtype.name.lower(), "bytes": size, "blocks": blocks, "elements of a block": one.count}
    if one.kind in REDUCTION_KINDS:
        args["op"] = one.op.name.lower()
    if one.kind in ROOTED:
        args["root"] = one.root
    if dtype == CollectiveType.BF16 and one.kind in REDUCTION_KINDS:
        args |= {"narrow": one.narrow, "rounding": "stochastic" if one.stochastic else "to nearest even"}
    return f"{name} {dtype.name.lower()} {_size(size)}", args


def _cores(group: Group) -> str:
    """Return who is in a group."""
    step = "" if abs(group.stride) == 1 else f", every {abs(group.stride)}"
    return f"{group.ranks} cores from {group.cores[0]} to {group.cores[-1]}{step}"


def _size(size: int) -> str:
    for unit, one in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= one and size % (one // 4) == 0:
            return f"{size / one:g} {unit}"
    return f"{size:,} bytes"
