"""Command-line variables of every campaign, and the executor that they select."""

from neuroncore_rtl.run.settings import Settings, choice, integer

__all__ = ["CAMPAIGN_OPTIONS", "executor_of"]

_WORKERS = "parallel processes, default one per core; with a batch queue, the number of jobs"
_CLUSTER = (
    "run on a cluster instead of here: address of a dask.distributed scheduler, such as tcp://host:8786, "
    "or a batch queue: slurm, pbs, lsf, sge, oar, moab, htcondor"
)

CAMPAIGN_OPTIONS = (integer("WORKERS", None, _WORKERS, 1, 1024), choice("CLUSTER", None, _CLUSTER))


def executor_of(settings: Settings):
    """Return the `tb.campaign.executor.Executor` that `CAMPAIGN_OPTIONS` select."""
    if settings.cluster is not None:
        from neuroncore_rtl.tb.campaign.cluster import cluster_named

        return cluster_named(settings.cluster, settings.workers)
    from neuroncore_rtl.tb.campaign.executor import LocalExecutor

    return LocalExecutor(settings.workers) if settings.workers else LocalExecutor()
