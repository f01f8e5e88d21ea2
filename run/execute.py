"""Executes a job on a target, compares its memories with golden's, and records timeline, links and profile."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from neuroncore_rtl.run.activity import hbm_width
from neuroncore_rtl.run.check.link_table import link_summary, link_table
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Expected, Job
from neuroncore_rtl.run.jobs import ImageJob
from neuroncore_rtl.run.report import progress, recordings, shown
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.targets.target import Executed, Target
from neuroncore_rtl.run.view.link_picture import draw_links
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.files import write_profile
from neuroncore_rtl.run.view.profile.run import modelled_run, simulated_run
from neuroncore_rtl.run.view.timeline import write_timeline

__all__ = ["execute", "profiles"]


def execute(job: Job, on: Target, *, bandwidth: int = 0) -> Result:
    """Execute a job and return its result; print the first differences from golden.

    Arguments:
        job: the job.
        on: the target.
        bandwidth: bytes a cycle that HBM moves at most, 0 for the width of its ports; for the profile.

    Raises:
        UsageError: if the target cannot execute the job.
        SimulationFailed: if the simulation does not end.
    """
    expected = None
    if on.compares and type(job).golden is not Job.golden:  # golden knows such jobs
        with progress("golden"):
            expected = job.golden()
    done = on.execute(job)
    compared, mismatches, differences, failures = {}, {}, (), list(done.failures)
    if expected is not None:
        compared, mismatches = _compared(job, done, expected)
        if any(mismatches.values()):
            differences = tuple(job.differences(done.memories, expected))
            print(*differences, sep="\n")
        if done.outcome is not None:
            failures += job.failures(done.outcome, expected)
    links, summary = {}, {}
    if job.instance is not None and done.outcome is not None and done.outcome.links is not None:
        activity = done.outcome.links
        links = link_table(job.instance, activity.counters, done.cycles or 0, activity.dead)
        summary = link_summary(job.instance, links, sum(activity.disturbed))
    files = _pictures(job, done.outcome, links) if done.outcome and not done.outcome.host else {}
    profile, folder = _profile(job, done, bandwidth) if on.profile and isinstance(job, ImageJob) else (None, None)
    return Result(
        job=job,
        target=on.name,
        done=done,
        expected=expected or done.expected,
        compared_parts=compared,
        mismatched_parts=mismatches,
        differences=differences,
        failures=tuple(failures),
        files=files | ({"waveform": done.waveform} if done.waveform else {}),
        links=links,
        link_summary=summary,
        profiled=profile,
        profile_folder=folder,
    )


def _compared(job: Job, done: Executed, expected: Expected) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of bytes that were compared, and of those that differ, by part of the memories."""
    if done.known:
        pairs = {n: (done.memories[n][known], expected.memories[n][known]) for n, known in done.known.items()}
    else:
        found, golden = (job.parts(memories) for memories in (done.memories, expected.memories))
        pairs = {name: (found[name], part) for name, part in golden.items()}
    return (
        {name: part.size for name, (_, part) in pairs.items()},
        {name: int(np.count_nonzero(part != golden)) for name, (part, golden) in pairs.items()},
    )


def _pictures(job: Job, outcome: Outcome, links: Mapping) -> dict[str, str]:
    """Write the timeline of a run, and a picture of its links if there are any; return both for a report."""
    tracks = [*job.tracks(outcome)] if job.pictures else []
    if not tracks:
        return {}
    files = {"timeline": shown(write_timeline(recordings() / "timelines" / f"{job.pictures}.json", tracks))}
    if job.instance is not None:
        path = recordings() / "plots" / f"{job.pictures}.png"
        files["picture"] = shown(draw_links(path, job.instance, links, job.title, f"{job.cycles(outcome):,} cycles"))
    return files


def profiles() -> Path:
    """Return the folder of all profiles."""
    return recordings() / "profiles"


def _profile(job: ImageJob, done: Executed, bandwidth: int) -> tuple[Figures, Path]:
    """Write the profile of a run; return its numbers and its folder."""
    (image,) = job.images
    if done.prediction is not None:
        run = modelled_run(f"{job.pictures}-model", image, done.prediction)
    else:
        assert done.outcome is not None
        run = simulated_run(str(job.pictures), image, done.outcome.parts[0])
    with progress("writing the profile"):
        folder = (profiles() / run.name).absolute()
        return write_profile(folder, run, hbm_width(job.config, bandwidth)), folder
