"""Kernels: functions that append instructions to a program; ValueError if shapes or formats do not match."""
