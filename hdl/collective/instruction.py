"""Collective instruction layout: `spec.isa.collective.COLLECTIVE_FIELDS` with a signed stride."""

from amaranth import signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS, SIGNATURE_BITS, SIGNATURE_FIELDS, SIGNATURE_OFFSETS

__all__ = ["CollectiveInstruction", "SignatureLayout"]

CollectiveInstruction = data.StructLayout(
    {name: signed(width) if name == "stride" else unsigned(width) for name, width in COLLECTIVE_FIELDS}
)
"""One instruction; order and widths as in `spec.isa.collective.COLLECTIVE_FIELDS`."""

SignatureLayout = data.FlexibleLayout(
    SIGNATURE_BITS, {name: data.Field(unsigned(width), SIGNATURE_OFFSETS[name]) for name, width in SIGNATURE_FIELDS}
)
"""Signature of a collective: payload of a READY or REFUSE flit. Fields that are never used together share bits."""
