"""Where two announcements of a collective differ."""

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.collective.instruction import SignatureLayout
from neuroncore_rtl.spec.isa.collective import OTHER_SIDE, SIGNATURE_FIELDS, SIGNATURE_USES, CollectiveKind
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Disagreement", "among", "difference"]


class Disagreement(data.Struct):
    """Two cores are not in the same collective. valid: it is so. core: the other one. field: the lowest field in which
    they differ: one more than its place in `SIGNATURE_FIELDS`."""

    valid: unsigned(1)
    core: unsigned(CORE_BITS)
    field: range(len(SIGNATURE_FIELDS) + 1)


def among(kind: Value, kinds) -> Value:
    """Return whether a kind is one of some."""
    return kind.matches(*(int(k) for k in sorted(kinds)))


def difference(m: Module, name: str, own: Value, other: Value) -> Signal:
    """Return the lowest field in which two signatures do not go together, one more than its place; 0 if they do.

    Arguments:
        m: gets the logic, and a signal called `name`.
    """
    own, other = data.View(SignatureLayout, own), data.View(SignatureLayout, other)
    field = Signal(range(len(SIGNATURE_FIELDS) + 1), name=name)
    partner = own.kind
    for kind, other_side in OTHER_SIDE.items():
        partner = Mux(own.kind == kind, other_side, partner)
    for place in reversed(range(len(SIGNATURE_FIELDS))):
        label, _ = SIGNATURE_FIELDS[place]
        if label == "kind":
            differs = other.kind != partner
        else:
            users = {kind for kind in CollectiveKind if label in SIGNATURE_USES[kind]}
            differs = (own[label] != other[label]) & among(own.kind, users)
        with m.If(differs):
            m.d.comb += field.eq(place + 1)
    return field
