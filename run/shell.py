"""The user's shell: width of the terminal, paths and commands as text."""

from pathlib import Path

from rich.console import Console

from neuroncore_rtl import IN_CLONE

__all__ = ["PLAIN_WIDTH", "display_path", "shell_command", "terminal"]

PLAIN_WIDTH = 120
"""Columns of output to a file or a pipe."""


def terminal(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or as `PLAIN_WIDTH`."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def display_path(path: Path) -> str:
    """Return a path as text, relative if it is in the working directory."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def shell_command(target: str, test: str = "", *words: str) -> str:
    """Return the shell command of a target and a TEST: make's, or, without a Makefile, the installed program's."""
    if IN_CLONE:
        return " ".join(["make", target, *([f"TEST={test}"] if test else []), *words])
    return " ".join(["neuroncore-rtl", target, *([test] if test else []), *words])
