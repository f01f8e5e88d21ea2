"""Import of StableHLO: the portable bytes that `jax.export` and PJRT give become a graph."""
