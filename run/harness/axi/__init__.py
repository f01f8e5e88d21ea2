"""Harness of AXI ports."""
