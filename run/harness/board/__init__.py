"""Harness of a simulated board."""
