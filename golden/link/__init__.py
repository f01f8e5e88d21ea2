"""NeuronLink as equations: which links a flit goes over."""

from neuroncore_rtl.golden.link.route import Hop, links, route

__all__ = ["Hop", "links", "route"]
