"""A collective as a hardware structure: a layout over `spec.isa.collective.COLLECTIVE_FIELDS`, its stride signed."""

from amaranth import signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS, SIGNATURE_BITS, SIGNATURE_FIELDS, SIGNATURE_OFFSETS

__all__ = ["CollectiveInstruction", "SignatureLayout"]

CollectiveInstruction = data.StructLayout(
    {name: signed(width) if name == "stride" else unsigned(width) for name, width in COLLECTIVE_FIELDS}
)
"""One instruction; the widths and their order are those of `spec.isa.collective.COLLECTIVE_FIELDS`."""

SignatureLayout = data.FlexibleLayout(
    SIGNATURE_BITS, {name: data.Field(unsigned(width), SIGNATURE_OFFSETS[name]) for name, width in SIGNATURE_FIELDS}
)
"""What a READY or REFUSE flit carries; fields that not all kinds have share bits."""
