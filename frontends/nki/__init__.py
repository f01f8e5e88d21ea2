"""A front end for AWS's Neuron Kernel Interface: a kernel written for it becomes a program of this machine.

A kernel is Python that calls `nki.isa` and `nki.language` on symbolic tensors. Its calls are recorded one by one, loops
and all, and become instructions of :mod:`kernels.program`; nothing of the vendor's packages is needed, or used where it
is installed. The modules that kernels import are made by :mod:`frontends.nki.modules` and answer only while a kernel is
loaded (:mod:`frontends.nki.hook`).
"""
