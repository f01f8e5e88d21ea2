"""Targets of a run: the RTL core, one engine, the numpy model, the timing model, a board."""
