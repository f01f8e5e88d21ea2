"""Scalar engine: activation functions by tables and polynomials."""
