"""Networks that are built from the kernel library."""
