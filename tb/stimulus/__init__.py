"""Random and special operands, programs and timing patterns."""
