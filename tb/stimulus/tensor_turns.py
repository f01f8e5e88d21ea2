"""Close sequences of loads and multiplications, which independent random draws seldom produce.

They expose faults in the tensor engine's sequencing.
"""

__all__ = ["CLOSE", "TURNS"]

LOAD, MULTIPLY = True, False

TURNS = (
    # Weights replace others while the multiplication that uses them is already pending.
    (LOAD, LOAD, MULTIPLY),
    (LOAD, LOAD, LOAD, MULTIPLY),
    # Weights are loaded during a multiplication, or used by two.
    (LOAD, MULTIPLY, LOAD, MULTIPLY),
    (LOAD, MULTIPLY, MULTIPLY),
)
"""Sequences; True is a load."""

CLOSE = 0.15  # probability of such a sequence instead of an independent draw
