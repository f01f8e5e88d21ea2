"""Testbench: TESTs, stimulus, checks, proofs, campaigns and the command line."""
