"""Tiling of matrices, transfers between HBM and SBUF, and software pipelining."""
