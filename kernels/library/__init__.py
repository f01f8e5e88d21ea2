"""Kernel library: products, convolution, normalisation, attention, search."""
