"""Intermediate representation of a model: values, operations, blocks."""
