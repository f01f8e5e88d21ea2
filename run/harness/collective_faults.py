"""Errors of collective engines, and the names of links, as text."""

from dataclasses import dataclass

from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa import Cause, cause_name
from neuroncore_rtl.spec.isa.collective import SIGNATURE_FIELDS

__all__ = ["CollectiveFault", "disagreement_text", "link_name"]

_DIRECTIONS = {Topology.RING: ("up", "down"), Topology.TORUS: ("+column", "-column", "+row", "-row")}


@dataclass(frozen=True)
class CollectiveFault:
    """Error of a core's collective engine, a `spec.isa.Rule` or `Cause`, after `number` accepted instructions."""

    core: int
    cause: int
    number: int
    detail: int

    def __str__(self) -> str:
        place = f"core {self.core}: instruction {self.number}: {cause_name(self.cause)}"
        if self.cause == Cause.DISAGREE:
            return f"{place} {disagreement_text(self.detail)}"
        return f"{place}, detail {self.detail:#x}"


def disagreement_text(detail: int) -> str:
    """Return the text of a DISAGREE's detail: the other core, and the field in which it disagrees."""
    other, field = detail & 0xFF, (detail >> 8) - 1
    name = SIGNATURE_FIELDS[field][0] if 0 <= field < len(SIGNATURE_FIELDS) else f"field {field}"
    return f"with core {other} in {name}"


def link_name(instance: Instance, wire: int) -> str:
    """Return the name of a wire: sending chip, direction, receiving chip."""
    chip, direction = divmod(wire, instance.directions)
    way = _DIRECTIONS[instance.topology][direction]
    return f"link chip {chip} {way} -> chip {instance.neighbour(chip, direction)}"
