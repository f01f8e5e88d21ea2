"""Comparison of the signatures of collectives."""

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.collective.instruction import SignatureLayout
from neuroncore_rtl.spec.isa.collective import OTHER_SIDE, SIGNATURE_FIELDS, SIGNATURE_USES, CollectiveKind
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Disagreement", "among", "difference"]


class Disagreement(data.Struct):
    """Two cores are in different collectives.

    Fields:
        valid: a disagreement was found.
        core: the core that sent the different signature.
        field: the lowest field that differs: its index in `SIGNATURE_FIELDS` plus one.
    """

    valid: unsigned(1)
    core: unsigned(CORE_BITS)
    field: range(len(SIGNATURE_FIELDS) + 1)


def among(kind: Value, kinds) -> Value:
    """Return whether `kind` is one of `kinds`, as a one-bit value."""
    return kind.matches(*(int(k) for k in sorted(kinds)))


def difference(m: Module, name: str, own: Value, other: Value) -> Signal:
    """Return the lowest field in which two signatures do not match, as its index plus one; 0 if they match.

    Arguments:
        m: module that gets the logic.
        name: name of the returned signal.
        own: signature of this core.
        other: signature of the other core.
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
