"""Execution of NKI kernels from Python, pytest and the command line."""
