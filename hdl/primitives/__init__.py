"""Primitives: FIFOs, skid buffer, arbiter, counters, clock gate and checks."""
