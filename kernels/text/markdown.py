"""Markdown of generated pages."""

from collections.abc import Iterable

__all__ = ["markdown_table", "replace_between"]


def markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table with a header row; vertical bars in the cells of `rows` are escaped."""
    lines = [head, ("---",) * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replace_between(text: str, begin: str, end: str, new: str) -> str:
    """Return a page with the text between two marks replaced; the marks remain."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{new}{end}{after}"
