"""Tables of measured figures, whose rows are dicts."""

from collections.abc import Iterable, Mapping

from rich.table import Table

__all__ = ["table"]


def table(title: str, rows: Iterable[Mapping[str, object]], columns: str, caption: str | None = None) -> Table:
    """Return a table.

    Arguments:
        title, caption: above it and below it.
        rows: figures by name; what is true or false reads yes or NO.
        columns: a heading, a colon and a format of a row's figures for each; a | or a new line between them.
    """
    made = Table(title=title, caption=caption)
    cells = [column.strip().split(": ", 1) for column in columns.strip().replace("\n", "|").split("|")]
    for heading, _ in cells:
        made.add_column(heading, justify="right")
    for row in rows:
        words = {name: "yes" if value else "NO" for name, value in row.items() if isinstance(value, bool)}
        made.add_row(*(text.format_map({**row, **words}) for _, text in cells))
    return made
