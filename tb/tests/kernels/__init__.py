"""TESTs of library kernels and networks."""
