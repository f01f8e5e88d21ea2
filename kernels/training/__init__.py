"""Kernels for training: gradients, loss and optimiser; ValueError if shapes or formats do not match."""
