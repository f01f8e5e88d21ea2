"""Lowering of a kernel's calls, loops and operators to instructions."""
