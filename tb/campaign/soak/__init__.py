"""Soak: random cases, and reduction of failures."""
