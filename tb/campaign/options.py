"""Variables of every command that runs a campaign, and the workers that they ask for."""

from neuroncore_rtl.run.settings import Settings, choice, integer

__all__ = ["CAMPAIGN_OPTIONS", "executor_of"]

_WORKERS = "processes that run at once, as many as there are cores unless told; of a queue of jobs, jobs"
_CLUSTER = (
    "where the workers are, instead of here: the address of a scheduler of dask.distributed, such as tcp://host:8786, "
    "or a queue of jobs: slurm, pbs, lsf, sge, oar, moab, htcondor"
)

CAMPAIGN_OPTIONS = (integer("WORKERS", None, _WORKERS, 1, 1024), choice("CLUSTER", None, _CLUSTER))
"""Who does the work."""


def executor_of(settings: Settings):
    """Return the workers that `CAMPAIGN_OPTIONS` ask for, a :class:`tb.campaign.executor.Executor`.

    Raises:
        UsageError: if there is no such cluster.
        MissingTool: if what starts jobs is not installed.
    """
    if settings.cluster is not None:
        from neuroncore_rtl.tb.campaign.cluster import cluster_named

        return cluster_named(settings.cluster, settings.workers)
    from neuroncore_rtl.tb.campaign.executor import LocalExecutor

    return LocalExecutor(settings.workers) if settings.workers else LocalExecutor()
