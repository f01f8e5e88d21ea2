"""Formal properties and the solver that proves them."""
