"""TARGET=model: the timing model answers for the core, in seconds where RTL would take hours; nothing is compared."""

from collections.abc import Mapping, Sequence

from neuroncore_rtl.golden import timing
from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.kernels.control import executed
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.settings import Settings, UsageError

__all__ = ["flow_options", "memory_timing", "modelled_report", "predicted"]


def memory_timing(settings: Settings) -> "timing.MemoryTiming":
    """Return the HBM that the options ask for.

    Raises:
        UsageError: if they ask for pauses, or for a waveform.
    """
    for name in ("STALL", "WAVES"):
        if settings.values.get(name):
            raise UsageError(f"{name} must be 0 for TARGET=model, not {settings.values[name]}")
    return timing.MemoryTiming(latency=settings.latency, bandwidth=settings.bandwidth)


def flow_options(image: Image, loaded: Sequence[int]) -> dict[str, object]:
    """Return the options of :func:`golden.timing.predict` for an image with registers or loops; loaded: what the
    controller of golden has read on chip in its run."""
    if image.flow is None:
        return {}
    operations = [*executed(image.flow, loaded)]
    sections = [operation.a for operation, _ in operations if operation.code.name == "RUN"]
    path = timing.flow_path([(operation.code.name, leaves) for operation, leaves in operations])
    return {"sections": sections, "path": path}


def predicted(image: Image, settings: Settings, **options: object) -> Prediction:
    """Return what the timing model says of an image; options: those of :func:`golden.timing.predict`.

    Raises:
        UsageError: if the machine or its HBM is one that the model does not know.
    """
    memory = memory_timing(settings)
    if image.config.cores > 1:
        raise UsageError(f"CORES must be 1 for TARGET=model, not {image.config.cores}")
    records = sum(map(len, image.records))
    with progress(f"timing model: {records:,} records"):
        return timing.predict(image, memory, **options)


def modelled_report(
    test: str,
    label: str,
    settings: Settings,
    found: Prediction,
    ideal: int,
    extra: Mapping[str, object],
    hbm: int | None = None,
) -> Report:
    """Return the report of a TEST that the timing model answered.

    Arguments:
        test, label, settings: of the TEST.
        found: the model's answer.
        ideal: cycles if no unit ever waited.
        extra: further lines.
        hbm: cycles that HBM needs at least, if that is known.
    """
    cycles = max(found.cycles, 1)
    waited = {queue: causes for queue, causes in found.waits.items() if any(causes.values())}
    # Each engine has causes of its own.
    causes = dict.fromkeys(cause for own in waited.values() for cause in own)
    waits = {
        queue: {cause: f"{own[cause] / cycles:.1%}" if cause in own else "" for cause in causes}
        for queue, own in waited.items()
    }
    return Report(
        test=test,
        label=f"model-{label}",
        settings=dict(settings.values),
        compared=0,
        mismatches=0,
        cycles=found.cycles,
        ideal_cycles=ideal,
        hbm_cycles=hbm,
        modelled=True,
        extra={
            **extra,
            "records": len(found.records),
            "config": settings.config.named,
            "busy": {name: f"{count / cycles:.1%}" for name, count in found.busy.items() if count},
            "waits": waits,
        },
    )
