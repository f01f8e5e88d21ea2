"""Gradients, loss and optimiser of training."""
