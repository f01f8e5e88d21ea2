"""Lanes: simulation of replicated modules as vector code; a *lane* is one instance of such a module."""
