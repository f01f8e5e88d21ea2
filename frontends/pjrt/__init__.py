"""Plug-in of JAX: `JAX_PLATFORMS=neuron` runs every program of a script on the simulated machine."""

from functools import cache
from typing import Any

__all__ = ["initialize"]

SUPPORTED = ("0.10.2",)
"""Versions of JAX with which the plug-in is tested."""


@cache
def initialize() -> None:
    """Register the platform if JAX_PLATFORMS names it; JAX calls this before its first use of a device."""
    import jax
    import jaxlib

    from neuroncore_rtl.frontends.pjrt.core import PLATFORM

    chosen: Any = jax.config
    if PLATFORM not in (chosen.jax_platforms or "").split(","):
        return
    for package in (jax, jaxlib):
        if package.__version__ not in SUPPORTED:
            rule = f"the platform {PLATFORM} needs {package.__name__} {' or '.join(SUPPORTED)}"
            raise ImportError(f"{rule}, not {package.__version__}; neuroncore_rtl.jit runs functions with any JAX")
    from jax._src.xla_bridge import register_plugin

    from neuroncore_rtl.frontends.pjrt.table import api_capsule

    register_plugin(PLATFORM, priority=500, c_api=api_capsule())
