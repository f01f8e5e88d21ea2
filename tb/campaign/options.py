"""Variables of every command that runs a campaign, and the workers that they ask for."""

from neuroncore_rtl.tb.campaign.executor import Executor, LocalExecutor
from neuroncore_rtl.tb.sim.settings import Settings, integer

__all__ = ["CAMPAIGN_OPTIONS", "executor_of"]

CAMPAIGN_OPTIONS = (
    integer("WORKERS", None, "processes that run at once, as many as there are cores unless told", 1, 1024),
)
"""Who does the work."""


def executor_of(settings: Settings) -> Executor:
    """Return the workers that `CAMPAIGN_OPTIONS` ask for."""
    return LocalExecutor(settings.workers) if settings.workers else LocalExecutor()
