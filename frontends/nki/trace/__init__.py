"""Tracing of a kernel: recorded calls, tensors and pending results."""
