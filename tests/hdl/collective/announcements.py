"""What a core announces of a collective, and where two announcements differ."""

from neuroncore_rtl.spec.isa import collective as isa

__all__ = ["field_at", "other_side", "with_kind"]


def with_kind(word: int, kind: isa.CollectiveKind) -> int:
    """Return an announcement with its kind replaced."""
    return word >> 3 << 3 | kind


def other_side(word: int, kind: isa.CollectiveKind) -> int:
    """Return what goes together with an announcement of this kind."""
    return with_kind(word, isa.OTHER_SIDE.get(kind, kind))


def field_at(kind: isa.CollectiveKind, bit: int) -> int:
    """Return the field that a bit of an announcement is of, one more than its place; 0 if its kind has none there."""
    places = (
        place
        for place, (name, width) in enumerate(isa.SIGNATURE_FIELDS)
        if name in isa.SIGNATURE_USES[kind] and 0 <= bit - isa.SIGNATURE_OFFSETS[name] < width
    )
    return next(places, -1) + 1
