"""Golden model: every result of the hardware in numpy, bit for bit, and its timing model."""
