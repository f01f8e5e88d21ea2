"""Signature of a collective, by which ranks check that they execute the same operation."""

from neuroncore_rtl.spec.isa.collective.kind import OTHER_SIDE, RANK_BITS, CollectiveKind
from neuroncore_rtl.spec.isa.collective.layout import COLLECTIVE_SIGNED
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack, width_of

__all__ = [
    "SIGNATURE_BITS", "SIGNATURE_FIELDS", "SIGNATURE_OFFSETS", "SIGNATURE_USES", "disagreement", "signature",
    "signature_fields",
]  # fmt: skip

SIGNATURE_FIELDS: Layout = (
    ("kind", 3),
    ("op", 2),
    ("dtype", 2),
    ("narrow", 1),
    ("stochastic", 1),
    ("chunk", 5),
    ("ranks", RANK_BITS),
    ("base", 7),
    ("stride", 7),
    ("count", 30),
    ("root", RANK_BITS),
)
"""Fields of a signature, which READY and REFUSE flits carry. Two ranks that disagree report the index in this list of
the first field that differs. stride is in two's complement. Fields that the kind does not use are 0.
"""

SIGNATURE_BITS = 64
"""Bits of the smallest flit's data."""


def _signature_offsets() -> dict[str, int]:
    names = [name for name, _ in SIGNATURE_FIELDS]
    offsets = {name: width_of(SIGNATURE_FIELDS[:place]) for place, name in enumerate(names)}
    return offsets | {"root": offsets["stochastic"]}


SIGNATURE_OFFSETS = _signature_offsets()
"""Lowest bit of each field of a signature. The fields are contiguous, except that BROADCAST's root has the bits of
stochastic and chunk, which BROADCAST does not use.
"""

_GROUP = frozenset({"kind", "ranks", "base", "stride"})
_DATA = _GROUP | {"dtype", "count"}
_REDUCTION = _DATA | {"op", "narrow", "stochastic", "chunk"}
SIGNATURE_USES: dict[CollectiveKind, frozenset[str]] = {
    CollectiveKind.ALL_REDUCE: _REDUCTION,
    CollectiveKind.REDUCE_SCATTER: _REDUCTION,
    CollectiveKind.ALL_GATHER: _DATA | {"chunk"},
    CollectiveKind.BROADCAST: _DATA | {"root"},
    CollectiveKind.ALL_TO_ALL: _DATA,
    CollectiveKind.SEND: _DATA,
    CollectiveKind.RECEIVE: _DATA,
    CollectiveKind.BARRIER: _GROUP,
}
"""Signature fields that each kind uses. SEND and RECEIVE identify each other by the ranks that they send to."""


def signature(values: dict[str, int]) -> int:
    """Return the word that a rank sends."""
    word = 0
    for name, width in SIGNATURE_FIELDS:
        if name in SIGNATURE_USES[CollectiveKind(values["kind"])]:
            word |= pack(((name, width),), values, "signature", COLLECTIVE_SIGNED) << SIGNATURE_OFFSETS[name]
    return word


def signature_fields(word: int) -> dict[str, int]:
    """Return, by name, the fields of a signature that its kind uses."""
    values = {
        name: unpack(((name, width),), word >> SIGNATURE_OFFSETS[name], COLLECTIVE_SIGNED)[name]
        for name, width in SIGNATURE_FIELDS
    }
    return {name: values[name] for name in values if name in SIGNATURE_USES[CollectiveKind(values["kind"])]}


def disagreement(own: int, other: int) -> str | None:
    """Return the lowest field in which two signatures do not match, or None. SEND matches RECEIVE."""
    own_fields, other_fields = signature_fields(own), signature_fields(other)
    kind = CollectiveKind(own_fields["kind"])
    if OTHER_SIDE.get(kind, kind) != other_fields["kind"]:
        return "kind"
    return next((name for name in own_fields if name != "kind" and own_fields[name] != other_fields[name]), None)


assert all(SIGNATURE_OFFSETS[name] + width <= SIGNATURE_BITS for name, width in SIGNATURE_FIELDS)
