"""Measurements of area, clock and critical paths on FPGAs."""
