"""The runtime: runs a program on the simulated machine, on the numpy model, on the timing model or on a board.

`run` is the public entry point; the modules that simulate are imported when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroncore_rtl.run.program import ProgramFailed, run
    from neuroncore_rtl.run.result import Result

__all__ = ["ProgramFailed", "Result", "run"]


def __getattr__(name: str):
    """Import a public name when it is first used: numpy and Amaranth take a second to import."""
    if name == "Result":
        from neuroncore_rtl.run.result import Result

        return Result
    if name in ("ProgramFailed", "run"):
        from neuroncore_rtl.run import program

        return getattr(program, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
