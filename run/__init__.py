"""The runtime: runs a program on the simulated machine, the numpy model, the timing model or a board.

`run` is the entry point; its first use imports the modules that simulate. This package itself can be called like it,
because `neuroncore_rtl.run` is its name too.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuroncore_rtl.run.program import ProgramFailed, run
    from neuroncore_rtl.run.result import Result

__all__ = ["ProgramFailed", "Result", "run"]


def __getattr__(name: str):
    """Import a public name at its first use: numpy and Amaranth take a second."""
    if name == "Result":
        from neuroncore_rtl.run.result import Result

        return Result
    if name in ("ProgramFailed", "run"):
        from neuroncore_rtl.run import program

        return getattr(program, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _CallablePackage(ModuleType):
    def __call__(self, *args, **options) -> Any:
        return self.run(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
