"""The table of docs/nki.md: every name of the interface, and what this machine makes of it.

`python -m neuroncore_rtl.frontends.nki.table` writes it there.
"""

from collections.abc import Iterator
from pathlib import Path

from neuroncore_rtl.frontends.nki import unsupported
from neuroncore_rtl.frontends.nki.dtypes import DType
from neuroncore_rtl.frontends.nki.isa_generate import OLDER
from neuroncore_rtl.frontends.nki.language_math import EXPANDED, FUNCTIONS
from neuroncore_rtl.frontends.nki.language_memory import names
from neuroncore_rtl.frontends.nki.modules import CALLS
from neuroncore_rtl.spec.config import PRESETS

__all__ = ["BEGIN", "END", "PAGE", "table", "written"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nki.md"
BEGIN, END = "<!-- table: python -m neuroncore_rtl.frontends.nki.table -->\n", "<!-- /table -->"


def table() -> str:
    """Return the tables of both modules."""
    isa = [(name, call.how, call.note) for name, call in CALLS.items()]
    isa += [(f"{name}, of expressions", call.how, call.note or "in the first dialect") for name, call in OLDER.items()]
    isa += [("memset of a shape", "exact", "in the first dialect")]
    isa += [(name, "unsupported", why) for name, why in unsupported.ISA.items()]
    several = [(name, "expanded", EXPANDED[name]) for name in EXPANDED]
    single = [(name, "exact", "") for name in FUNCTIONS if name not in EXPANDED]
    known = names(PRESETS["tiny"])
    lacking = [name for name, value in known.items() if isinstance(value, DType) and value.format is None]
    others = [name for name in known if name not in FUNCTIONS and name not in lacking]
    missing = [(name, "unsupported", "the machine has no such format") for name in lacking]
    missing += [(name, "unsupported", why) for name, why in unsupported.LANGUAGE.items()]
    language = [
        (", ".join(f"`{name}`" for name in sorted(part)), "exact", note) for part, note in _alike(single, others)
    ]
    return "\n".join(
        [
            "| `nki.isa` | how | |", "|---|---|---|",
            *(f"| `{name}` | {how} | {note} |" for name, how, note in sorted(isa)),
            "", "| `nki.language` | how | |", "|---|---|---|",
            *(f"| {name} | {how} | {note} |" for name, how, note in language),
            *(f"| `{name}` | {how} | {note} |" for name, how, note in sorted(several + missing)),
            "",
        ]
    )  # fmt: skip


def _alike(single: list[tuple[str, str, str]], others: list[str]) -> Iterator[tuple[list[str], str]]:
    yield [name for name, _, _ in single], "an instruction each"
    yield others, "no instruction, but for `zeros`, `ones` and `full`: a MEMSET"


def written(text: str) -> str:
    """Return a page with the tables of today between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
