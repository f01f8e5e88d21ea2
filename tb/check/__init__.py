"""Comparison of results with the golden model and with references."""
