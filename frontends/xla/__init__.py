"""Front end for XLA: functions of JAX, as StableHLO, become programs of this machine.

A graph passes these rooms in order: `reading` imports it, `simplify` removes what needs no machine, `fuse` forms
passes, `emit` appends instructions. `graph` has its operations.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroncore_rtl.frontends.xla.jitted import jit

__all__ = ["jit"]


def __getattr__(name: str):
    if name == "jit":
        from neuroncore_rtl.frontends.xla.jitted import jit
        from neuroncore_rtl.run.sim.packages import require_packages

        require_packages("jax")  # here, so that `import jax` may follow

        return jit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
