"""Harnesses: Verilog around a simulated device, and its access from Python."""
