"""Turns of loads and multiplications one right behind the other, which those drawn one by one seldom have: of them the
sequencing of the tensor engine is wrong about, if it is."""

__all__ = ["CLOSE", "TURNS"]

LOAD, MULTIPLY = True, False

TURNS = (
    # Weights that replace others, while the multiplication that takes them waits already.
    (LOAD, LOAD, MULTIPLY),
    (LOAD, LOAD, LOAD, MULTIPLY),
    # Weights are loaded beside each multiplication, or serve two of them.
    (LOAD, MULTIPLY, LOAD, MULTIPLY),
    (LOAD, MULTIPLY, MULTIPLY),
)
"""Whether each is a load."""

CLOSE = 0.15
"""Share of the random choices that are such turns."""
