"""Bars of a page's timeline: columns of numbers, and texts that are stored once; thinned in long runs."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Bar", "bar_group", "thin"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from cycle `begin` to before `end`; `label` names its texts, and `count` instructions are drawn as one."""

    track: int
    begin: int
    end: int
    kind: str
    label: Hashable = None
    count: int = 1


def thin(bars: Sequence[Bar], most: int) -> tuple[list[Bar], int]:
    """Return at most about `most` bars, and the cycles below which bars are joined; 0 if all bars are returned.

    A joined bar spans bars of a track that are shorter than a window and begin in the same one.
    """
    window, found = 0, [*bars]
    while len(found) > most and window < bars[-1].end:
        window = max(2, 2 * window)
        joined: dict[object, list[Bar]] = {}
        for number, bar in enumerate(bars):
            short = bar.end - bar.begin < window
            joined.setdefault((bar.track, bar.begin // window) if short else number, []).append(bar)
        found = [_join(group) for group in joined.values()]
    return found, window


def _join(bars: list[Bar]) -> Bar:
    if len(bars) == 1:
        return bars[0]
    cycles: Counter[str] = Counter()
    for bar in bars:
        cycles[bar.kind] += bar.end - bar.begin
    ends = min(bar.begin for bar in bars), max(bar.end for bar in bars)
    return Bar(bars[0].track, *ends, cycles.most_common(1)[0][0], None, sum(bar.count for bar in bars))


def bar_group(
    name: str,
    tracks: Sequence[str],
    bars: Iterable[Bar],
    describe: Callable[[Hashable], tuple[str, str]],
    most: int,
) -> dict[str, object]:
    """Return a group of tracks for the page; `describe` returns the name and the details of a label.

    Bars of a track do not overlap: a bar that begins before the end of the previous one is drawn from there on, as in
    the timeline for Perfetto.
    """
    free: dict[int, int] = {}
    whole = []
    for bar in bars:
        begin = max(bar.begin, free.get(bar.track, 0))
        free[bar.track] = end = max(begin, bar.end)
        whole.append(Bar(bar.track, begin, end, bar.kind, bar.label))
    shown, window = thin(whole, most)
    shown.sort(key=lambda bar: (bar.track, bar.begin))
    texts: dict[str, int] = {}
    columns: dict[str, list[int]] = {key: [] for key in ("track", "begin", "end", "kind", "name", "text")}
    for bar in shown:
        title, details = describe(bar.label) if bar.count == 1 else (f"{bar.count:,} bars", "")
        row = (
            bar.track,
            bar.begin,
            bar.end,
            *(texts.setdefault(text, len(texts)) for text in (bar.kind, title, details)),
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return {"name": name, "tracks": [*tracks], "texts": [*texts], "bars": columns, "of": len(whole), "window": window}
