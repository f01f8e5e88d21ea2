"""Bars of a page's timeline: columns of numbers, and texts that are stored once; thinned in long runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from neuroncore_rtl.run.view.timeline import Slice, without_overlap

__all__ = ["bar_group", "thin"]

MOST_TEXT = 200  # characters of the details of a bar


def thin(bars: Sequence[Slice], most: int) -> tuple[list[Slice], int]:
    """Return at most about `most` bars, and the cycles below which bars are joined; 0 if all bars are returned.

    A joined bar spans bars of a track that are shorter than a window and begin in the same one.
    """
    window, found = 0, [*bars]
    while len(found) > most and window < bars[-1].end:
        window = max(2, 2 * window)
        joined: dict[object, list[Slice]] = {}
        for number, bar in enumerate(bars):
            short = bar.end - bar.begin < window
            joined.setdefault((bar.track, bar.begin // window) if short else number, []).append(bar)
        found = [_join(group) for group in joined.values()]
    return found, window


def _join(bars: list[Slice]) -> Slice:
    if len(bars) == 1:
        return bars[0]
    cycles: Counter[str] = Counter()
    for bar in bars:
        cycles[bar.kind] += bar.end - bar.begin
    ends = min(bar.begin for bar in bars), max(bar.end for bar in bars)
    return Slice(bars[0].track, *ends, f"{len(bars):,} bars", {}, cycles.most_common(1)[0][0])


def _place(bar: Slice) -> tuple[int, int]:
    return bar.track, bar.begin


def bar_group(
    name: str,
    tracks: Sequence[str],
    slices: Iterable[Slice],
    most: int,
    describe: Callable[[int], tuple[str, str]] | None = None,
) -> dict[str, object]:
    """Return a group of tracks for the page, drawn as in the timeline for Perfetto.

    `describe` returns the name and the details of a slice with a number; those of others are their own.
    """
    whole = [*without_overlap(sorted(slices, key=_place))]
    shown, window = thin(whole, most)
    texts: dict[str, int] = {}
    columns: dict[str, list[int]] = {key: [] for key in ("track", "begin", "end", "kind", "name", "text")}
    for bar in sorted(shown, key=_place):
        told = [str(value) if key == "meaning" else f"{key} {value}" for key, value in bar.args.items()]
        title, details = bar.name, ", ".join(told)[:MOST_TEXT]
        if describe is not None and bar.number is not None:
            title, details = describe(bar.number)
        numbers = (texts.setdefault(text, len(texts)) for text in (bar.kind, title, details))
        for column, value in zip(columns.values(), (bar.track, bar.begin, bar.end, *numbers), strict=True):
            column.append(value)
    return {"name": name, "tracks": [*tracks], "texts": [*texts], "bars": columns, "of": len(whole), "window": window}
