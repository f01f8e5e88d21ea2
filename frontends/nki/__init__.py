"""A front end for AWS's Neuron Kernel Interface: a kernel written for it becomes a program of this machine.

A kernel is Python that calls `nki.isa` and `nki.language` on symbolic tensors. Its calls are recorded one by one, loops
and all, and become instructions of :mod:`kernels.program`; nothing of the vendor's packages is needed, or used where it
is installed. The modules that kernels import are made by :mod:`frontends.nki.dialects.modules` and answer only while a
kernel is loaded (:mod:`frontends.nki.dialects.hook`).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroncore_rtl.frontends.nki.runtime.machine import nki_machine
    from neuroncore_rtl.frontends.nki.runtime.run import run_nki

__all__ = ["nki_machine", "run_nki"]


def __getattr__(name: str):
    """Return what simulates, imported when it is first used."""
    if name == "run_nki":
        from neuroncore_rtl.frontends.nki.runtime.run import run_nki

        return run_nki
    if name == "nki_machine":
        from neuroncore_rtl.frontends.nki.runtime.machine import nki_machine

        return nki_machine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
