"""Collective engine: reductions, copies and barriers of a group of cores."""
