"""Emission: passes and operations become instructions of a program of `kernels.program`."""
