"""Checks of a run: races, unwritten bytes, links and errors."""
