"""Harnesses of single engines."""
