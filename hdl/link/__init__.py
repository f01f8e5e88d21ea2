"""NeuronLink: flits, the ends of a link, and what lies between them."""
