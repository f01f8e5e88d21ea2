"""SVG as PNG and animated GIF, drawn without a display."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from neuroncore_rtl.run.sim.packages import require_packages

__all__ = ["svg_to_png", "write_gif"]

ZOOM = 1.5
"""Pixels of a PNG or GIF per pixel of its SVG."""


def svg_to_png(svg: str) -> bytes:
    """Return a drawing as PNG, with the fonts of matplotlib, so that it looks the same on every machine."""
    require_packages("plots")
    import matplotlib
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=svg,
        background="white",
        zoom=ZOOM,
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path()) / "fonts" / "ttf")],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )


def write_gif(svgs: Iterable[str], path: Path, seconds: float) -> Path:
    """Write drawings as a GIF that shows each of them for `seconds`, and repeats; return its path."""
    pictures = [svg_to_png(svg) for svg in svgs]
    from PIL import Image

    # All frames share the colours of the last one.
    images = [Image.open(BytesIO(picture)).convert("RGB") for picture in pictures]
    palette = images[-1].quantize(64)
    first, *others = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    first.save(path, save_all=True, append_images=others, duration=round(1000 * seconds), loop=0)
    return path
