"""Table of docs/nki.md: every name of the interface and its implementation on this machine.

`python -m neuroncore_rtl.frontends.nki.dialects.table` updates the page.
"""

from neuroncore_rtl import ROOT
from neuroncore_rtl.frontends.nki.dialects import language_math, language_moves, unsupported
from neuroncore_rtl.frontends.nki.dialects.isa_generate import OLDER
from neuroncore_rtl.frontends.nki.dialects.isa_register import REGISTER_CALLS
from neuroncore_rtl.frontends.nki.dialects.language_memory import names
from neuroncore_rtl.frontends.nki.dialects.modules import CALLS, MODULE_FUNCTIONS, OPERATION_NAMES
from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.frontends.nki.lowering.loops import LOOPS
from neuroncore_rtl.kernels.text.markdown import replace_between
from neuroncore_rtl.spec.config import PRESETS

__all__ = ["BEGIN", "END", "calls", "dialect_table"]

PAGE = ROOT / "docs" / "nki.md"
ONE = "an instruction each"
NONE = "no instruction, except `zeros`, `ones` and `full`: a MEMSET"
ALIKE = ("exact", ONE), ("exact", NONE)
BEGIN, END = "<!-- table: python -m neuroncore_rtl.frontends.nki.dialects.table -->\n", "<!-- /table -->"


def calls() -> dict[str, list[tuple[str, str, str]]]:
    """Return the table of calls per module, as rows of name, kind of implementation, and note."""
    isa = [(name, call.how, call.note) for name, call in CALLS.items()]
    isa += [(f"{name}, of expressions", call.how, call.note or "in the first dialect") for name, call in OLDER.items()]
    isa += [(name, call.how, call.note) for name, call in REGISTER_CALLS.items()]
    isa += [("memset of a shape", "exact", "in the first dialect")]
    isa += [(name, "unsupported", why) for name, why in unsupported.ISA.items()]
    expanded = language_math.MATH_EXPANDED | language_moves.MOVES_EXPANDED
    known = names(PRESETS["tiny"])
    lacking = [name for name, value in known.items() if isinstance(value, DType) and value.format is None]
    others = (*known, *OPERATION_NAMES, "NKIObject")
    language = [
        (name, "expanded" if name in expanded else "exact", expanded.get(name, ONE)) for name in MODULE_FUNCTIONS
    ]
    language += [(name, "exact", NONE) for name in others if name not in (*MODULE_FUNCTIONS, *LOOPS, *lacking)]
    language += [(name, "exact", note) for name, note in LOOPS.items()]
    language += [(name, "unsupported", "the machine has no such format") for name in lacking]
    language += [(name, "unsupported", why) for name, why in unsupported.LANGUAGE.items()]
    return {"nki.isa": sorted(isa), "nki.language": sorted(language)}


def dialect_table() -> str:
    """Return the tables of both modules; names of `nki.language` with the same implementation share a row."""
    lines = []
    for module, rows in calls().items():
        lines += [f"| `{module}` | how | |", "|---|---|---|"]
        for alike in (ONE, NONE):
            found = ", ".join(f"`{name}`" for name, how, note in rows if (how, note) == ("exact", alike))
            lines += [f"| {found} | exact | {alike} |"] if found else []
        lines += [f"| `{name}` | {how} | {note} |" for name, how, note in rows if (how, note) not in ALIKE] + [""]
    return "\n".join(lines)


def updated_page(text: str) -> str:
    """Return the text of a documentation page with its tables of calls replaced by the current ones."""
    return replace_between(text, BEGIN, END, dialect_table())


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text()))
