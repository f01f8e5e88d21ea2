"""Simulators: builds, processes and their caches."""
