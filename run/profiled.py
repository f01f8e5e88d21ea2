"""PROFILE=1: what is written and reported besides of what runs on the core, or by its timing model."""

from collections.abc import Mapping
from pathlib import Path

from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.core import hbm_width
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.report import progress, recordings, shown
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.files import write_profile
from neuroncore_rtl.run.view.profile.run import modelled_run, simulated_run
from neuroncore_rtl.run.view.profile.stalls import MEANINGS, Cause

__all__ = ["profile_lines", "profiles", "refuse_profile", "stall_table", "written_profile"]


def profiles() -> Path:
    """Return where profiles are written, a folder each."""
    return recordings() / "profiles"


def profile_lines(settings: Settings, name: str, image: Image, found: Outcome | Prediction) -> dict[str, object]:
    """Write the profile of a run if PROFILE asks for one; return what a report says of it. Arguments as of
    :func:`written_profile`."""
    written = written_profile(settings, name, image, found)
    if written is None:
        return {}
    directory, figures = written
    run = figures.run
    return {"profile": shown(directory), f"cycles_of_{run.queue_name(run.busiest)}": stall_table(figures)}


def written_profile(
    settings: Settings, name: str, image: Image, found: Outcome | Prediction
) -> tuple[Path, Figures] | None:
    """Write the profile of a run if PROFILE asks for one; return its folder and its numbers, else None.

    Arguments:
        settings: with the options PROFILE and BANDWIDTH.
        name: what ran, and the name of the folder; "-model" follows if the timing model has told the cycles.
        image: what ran.
        found: what became of it on a core that was profiled, or by the timing model.
    """
    if not settings.values.get("PROFILE"):
        return None
    modelled = isinstance(found, Prediction)
    name = f"{name.removesuffix(f'-{settings.sim}')}-model" if modelled else name
    run = modelled_run(name, image, found) if modelled else simulated_run(name, image, found)
    directory = profiles() / name
    with progress("writing the profile"):
        return directory, write_profile(directory, run, hbm_width(image.config, settings.bandwidth))


def refuse_profile(settings: Settings) -> None:
    """Raise UsageError if PROFILE asks for a profile of an engine that is alone, or of golden, which has no cycles."""
    if settings.values.get("PROFILE"):
        raise UsageError(
            "PROFILE must be 0 for an engine alone, and for golden: the core and its timing model have profiles"
        )


def stall_table(figures: Figures) -> Mapping[str, Mapping[str, object]]:
    """Return where the cycles of the busiest engine went, by cause; the last row is the sum."""
    run = figures.run
    counts = figures.stalls[run.queue_name(run.busiest)]
    rows = {cause.name.lower(): (counts[cause], MEANINGS[cause]) for cause in Cause}
    rows["sum"] = sum(counts.values()), "the cycles of the run"
    return {
        name: {"cycles": count, "share": f"{count / max(run.cycles, 1):.1%}", "meaning": meaning}
        for name, (count, meaning) in rows.items()
    }
