"""Harnesses of routers and collective engines."""
