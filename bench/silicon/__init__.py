"""Comparison of modelled cycles with published measurements of silicon."""
