"""Mutation testing of hardware units."""
