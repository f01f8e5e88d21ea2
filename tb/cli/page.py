"""Pages of runs on the command line: the variable OPEN, and the array in motion of a small product."""

import hashlib
import os
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from neuroncore_rtl.run.page.page import write_page
from neuroncore_rtl.run.page.parts import PageParts
from neuroncore_rtl.run.report import Report, progress, recordings
from neuroncore_rtl.run.settings import Command, Settings, UsageError, switch
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.view.array_motion import draw_motion
from neuroncore_rtl.tb.campaign.task import sources

__all__ = ["OPEN", "array_motion", "open_page", "opened", "split_open", "write_run_page"]

OPEN = switch("OPEN", 0, "1 opens the page of the run in the web browser")

MOST_ELEMENTS = 16
"""Processing elements of the largest array that a page shows in motion; Amaranth's simulator takes a second for 16."""

MOST_PRODUCTS = 4096
"""Multiplications of the largest product that is tried."""


def opened(find: Callable[[str], Command]) -> Callable[[str], Command]:
    """Return the function that finds a TEST as `find` does, with the variable OPEN."""

    def find_opened(name: str) -> Command:
        command = find(name)
        return replace(command, options=(*command.options, OPEN))

    return find_opened


def split_open(settings: Settings) -> tuple[Settings, bool]:
    """Return the TEST's own settings, and whether to open the page."""
    own = {name: value for name, value in settings.values.items() if name != OPEN.name}
    return Settings(own, settings.defaults), bool(settings.values.get(OPEN.name))


def write_run_page(command: Command, settings: Settings, report: Report, parts: PageParts | None, record: Path) -> Path:
    """Write the page of a TEST's run, and return its path."""
    shell = replace(command, options=tuple(one for one in command.options if one is not OPEN)).command(settings)
    files = {"record": record}
    return write_page(report, parts or PageParts(), command=shell, files=files, motion=array_motion(report))


def array_motion(report: Report) -> str:
    """Return the SVG of a report's product in the array; empty without a product, or with one that is too large.

    It is drawn once for each product, machine, and version of the sources.
    """
    if report.product is None:
        return ""
    a, b, fmt, config = report.product
    if config.rows * config.columns > MOST_ELEMENTS or len(a) * a.shape[1] * b.shape[1] > MOST_PRODUCTS:
        return ""
    key = repr((sources(), a.tolist(), b.tolist(), fmt.name, config))
    path = recordings() / "pictures" / f"motion-{hashlib.sha256(key.encode()).hexdigest()[:16]}.svg"
    if path.is_file():
        return path.read_text()
    from neuroncore_rtl.tb.cli.array_picture import run_product  # imports Amaranth's simulator

    try:
        with progress("drawing the array in motion"):
            drawn = draw_motion(run_product(a, b, fmt, config).motion)
    except UsageError:
        return ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn)
    return drawn


def open_page(path: Path) -> None:
    """Open a page in the web browser; without a display, print how to open it."""
    shown = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not (shown and webbrowser.open(path.as_uri())):
        click.echo(f"no web browser here; open {display_path(path)} in one")
