"""Lanes: simulation of replicated modules as vector code."""
