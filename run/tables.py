"""Tables of measured figures, from one dict per row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.table import Table

from neuroncore_rtl.run.sim.vectors import WAYS

__all__ = ["table"]


def table(title: str, rows: Iterable[Mapping[str, object]], columns: str, caption: str | None = None) -> Table:
    r"""Return a table with a title and a caption below.

    Arguments:
        title: title of the table.
        rows: figures by name; booleans are printed as yes and NO.
        columns: for each column a heading, a colon and a format of the row's figures, separated by | or new lines;
            `\\n` breaks a heading. A column with WAY is repeated for each way of simulation of the rows
            (`bench.ways.side_by_side`); a column of `speed_up` needs more than one way.
        caption: text below the table.
    """
    rows = list(rows)
    cells = list(_cells(columns, [way for way in WAYS if any(way in row for row in rows)]))
    made = Table(title=title, caption=caption)
    for heading, _ in cells:
        made.add_column(heading, justify="right")
    for row in rows:
        words = {name: "yes" if value else "NO" for name, value in row.items() if isinstance(value, bool)}
        made.add_row(*(text.format_map({**row, **words}) for _, text in cells))
    return made


def _cells(columns: str, ways: Sequence[str]) -> Iterator[tuple[str, str]]:
    for column in columns.strip().replace("\n", "|").split("|"):
        heading, text = column.strip().replace("\\n", "\n").split(": ", 1)
        if "WAY" in text:
            yield from ((heading.replace("WAY ", f"{way}\n"), text.replace("WAY", way)) for way in ways)
        elif "speed_up" not in text or len(ways) > 1:
            yield heading, text
