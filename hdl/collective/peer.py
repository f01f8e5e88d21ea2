"""Core that a collective waits for."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Peer"]


class Peer(data.Struct):
    """Core that must send READY, GRANT or data before the collective can continue.

    That core may itself wait for a third core. All fields are 0 if not `valid`.
    """

    valid: unsigned(1)
    core: unsigned(CORE_BITS)
