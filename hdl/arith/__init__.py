"""Arithmetic units: multiply-accumulate, adders, dividers, conversions and rounding."""
