"""Front ends: kernels of other interfaces become programs of this machine."""
