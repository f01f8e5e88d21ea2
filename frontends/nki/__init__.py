"""Front end for AWS's Neuron Kernel Interface (NKI): records a kernel as a program of this machine.

A kernel is Python that calls `nki.isa` and `nki.language` on symbolic tensors. Each call, in Python's loops too, is
recorded as instructions of `kernels.program`. The vendor's packages are not used:
`frontends.nki.dialects.hook` serves the modules of `frontends.nki.dialects.modules` while a kernel is loaded.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroncore_rtl.frontends.nki.runtime.machine import nki_machine
    from neuroncore_rtl.frontends.nki.runtime.run import run_nki

__all__ = ["nki_machine", "run_nki"]


def __getattr__(name: str):
    if name == "run_nki":
        from neuroncore_rtl.frontends.nki.runtime.run import run_nki

        return run_nki
    if name == "nki_machine":
        from neuroncore_rtl.frontends.nki.runtime.machine import nki_machine

        return nki_machine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
