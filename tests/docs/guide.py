"""Runs the Python blocks of a document, one after the other, in one namespace.

A text block behind a Python block is what that prints. `python -m tests.docs.guide` writes it into the document.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from neuroncore_rtl import ROOT

__all__ = ["GUIDE", "executed", "without_numbers"]

GUIDE = ROOT / "docs" / "kernels.md"

_BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def executed(path: Path) -> Iterator[tuple[str | None, str]]:
    """Run the blocks of a document; yield for each what it says is printed, None if nothing, and what was."""
    names = {"__name__": "__main__"}
    # In the file into which a reader would write the blocks, each begins where the one before it ended.
    line = 0
    for block in _BLOCK.finditer(path.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * line + block[1], "my_kernel.py", "exec"), names)
        line += block[1].count("\n")
        yield block[2], printed.getvalue()


def without_numbers(text: str) -> str:
    """Return a text with every number the same: cycles change with the hardware, what is said of them does not."""
    return re.sub(r"[\d,.]*\d", "0", text)


def main() -> None:
    """Write what the blocks of the guide print."""
    printed = iter(list(executed(GUIDE)))

    def block(found: re.Match) -> str:
        said, text = next(printed)
        return f"```python\n{found[1]}```\n" + ("" if said is None else f"\n```text\n{text}```\n")

    GUIDE.write_text(_BLOCK.sub(block, GUIDE.read_text()))


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
