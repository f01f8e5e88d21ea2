"""Specification that software and hardware share: parameters, formats, instructions and maps."""
