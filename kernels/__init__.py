"""Programs for the machine, and a kernel library."""
