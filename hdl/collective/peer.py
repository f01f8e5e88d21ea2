"""The core that a collective waits for."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Peer"]


class Peer(data.Struct):
    """valid: what is under way cannot go on until another core sends something: READY, GRANT or data. core: that one,
    which may itself wait for a third; 0 if not valid."""

    valid: unsigned(1)
    core: unsigned(CORE_BITS)
