"""TESTs of links, collectives and distributed kernels."""
