"""Fusion: elementwise operations and reductions that share an iteration space become one pass over memory."""
