"""Tensor engine: systolic array, loader, mover and skew."""
