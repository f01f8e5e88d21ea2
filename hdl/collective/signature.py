"""Where two announcements of a collective differ."""

from amaranth import Module, Signal, Value, unsigned
from amaranth.lib import data

from hdl.collective.instruction import SignatureLayout
from hdl.collective.ops import CORE_BITS
from spec.isa.collective import SIGNATURE_FIELDS

__all__ = ["Disagreement", "difference"]


class Disagreement(data.Struct):
    """Two cores are not in the same collective. valid: it is so. core: the other one. field: the lowest field in which
    they differ: one more than its place in `SIGNATURE_FIELDS`."""

    valid: unsigned(1)
    core: unsigned(CORE_BITS)
    field: range(len(SIGNATURE_FIELDS) + 1)


def difference(m: Module, name: str, own: Value, other: Value) -> Signal:
    """Return the lowest field in which two signatures differ, one more than its place; 0 if they are the same.

    Arguments:
        m: gets the logic, and a signal called `name`.
    """
    own, other = data.View(SignatureLayout, own), data.View(SignatureLayout, other)
    field = Signal(range(len(SIGNATURE_FIELDS) + 1), name=name)
    for place in reversed(range(len(SIGNATURE_FIELDS))):
        label, _ = SIGNATURE_FIELDS[place]
        with m.If(own[label] != other[label]):
            m.d.comb += field.eq(place + 1)
    return field
