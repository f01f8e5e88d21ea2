"""HBM behaviour with the number of a device's fault."""

from dataclasses import dataclass

from neuroncore_rtl.run.harness.hbm import Hbm

__all__ = ["FaultyHbm"]


@dataclass(frozen=True, kw_only=True)
class FaultyHbm(Hbm):
    fault: int = 0

    def plusargs(self):
        return [*super().plusargs(), f"+fault={self.fault}"]
