"""Cases of a soak, one module per kind of machine."""
