"""Figures of TESTs, written as PNG files without a display."""

from pathlib import Path
from typing import Any

from neuroncore_rtl.run.report import recordings

__all__ = ["write_figure"]


def write_figure(figure: Any, name: str) -> Path:
    """Add legends, write a figure to the folder of recordings, and return the path."""
    for axes in figure.axes:
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    path = recordings() / "plots" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path
