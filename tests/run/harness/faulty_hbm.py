"""HBM behaviour that also selects a fault of the device."""

from dataclasses import dataclass

from neuroncore_rtl.run.harness.hbm import Hbm

__all__ = ["FaultyHbm"]


@dataclass(frozen=True, kw_only=True)
class FaultyHbm(Hbm):
    """HBM's behaviour, and the number of the device's fault; 0: none."""

    fault: int = 0

    def plusargs(self):
        return [*super().plusargs(), f"+fault={self.fault}"]
