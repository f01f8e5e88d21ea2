"""Measurements: build time, simulation speed, utilisation, area, and comparison with silicon."""
