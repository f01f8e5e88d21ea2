"""NeuronLink: flits, link ends, wires and routers."""
