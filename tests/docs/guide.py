"""Runner of a document's Python blocks, each followed by its output in a text block.

`python -m tests.docs.guide` updates the outputs in the document.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from neuroncore_rtl import ROOT

__all__ = ["GUIDE", "run_blocks", "without_numbers"]

GUIDE = ROOT / "docs" / "kernels.md"

_BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def run_blocks(path: Path) -> Iterator[tuple[str | None, str]]:
    """Run the blocks of a document; yield for each the documented output (or None) and the actual one."""
    names = {"__name__": "__main__"}
    # Line numbers are those of a file with all blocks concatenated.
    line = 0
    for block in _BLOCK.finditer(path.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * line + block[1], "my_kernel.py", "exec"), names)
        line += block[1].count("\n")
        yield block[2], printed.getvalue()


def without_numbers(text: str) -> str:
    """Return a text with all numbers equal, because cycles change with the hardware."""
    return re.sub(r"[\d,.]*\d", "0", text)


def main() -> None:
    printed = iter(list(run_blocks(GUIDE)))

    def block(found: re.Match) -> str:
        said, text = next(printed)
        return f"```python\n{found[1]}```\n" + ("" if said is None else f"\n```text\n{text}```\n")

    GUIDE.write_text(_BLOCK.sub(block, GUIDE.read_text()))


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
