"""NeuronLink routing: the links that a flit uses."""

from neuroncore_rtl.golden.link.route import Hop, links, route

__all__ = ["Hop", "links", "route"]
