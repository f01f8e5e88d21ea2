"""From RTLIL to netlists, by the Yosys that comes with Amaranth.

Lanes are optimised, as what they lose is saved in every instance; the block around them is only flattened.
"""

import json
from collections.abc import Mapping

from amaranth._toolchain.yosys import find_yosys

__all__ = ["netlists"]

# Not `opt -full`, which uses that values are undefined: results must be those of the Verilog in every case.
LANES = """\
opt_expr
opt_merge
opt_muxtree
opt_reduce
opt_expr
opt_dff
opt_clean
wreduce
opt_expr
opt_merge
opt_share
opt_clean -purge
"""

BLOCK = """\
opt_clean
opt_merge
opt_expr
"""


def netlists(block: str, lanes: tuple[str, ...], texts: Mapping[str, str]) -> dict[str, dict]:
    """Return a block and its lanes as Yosys' `write_json` has them, by name.

    Arguments:
        block: name of the module. lanes: how those of its lanes begin.
        texts: RTLIL of it and of all modules below it, by name.
    """
    kept = [name for name in texts if name.startswith(lanes)]
    script = []
    for name, text in texts.items():
        if name in kept:
            text = text.replace(f"module \\{name}\n", f"attribute \\keep_hierarchy 1\nmodule \\{name}\n")
        script.append(f"read_rtlil <<rtlil\n{text}\nrtlil\n")
    script.append(
        f"hierarchy -top {block}\nproc -norom\nflatten\nselect {' '.join(kept)}\n{LANES}select {block}\n{BLOCK}"
    )
    script.append("select -clear\nmemory_collect\nopt_clean -purge\nwrite_json\n")
    text = find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], "".join(script), ignore_warnings=True)
    return json.loads(text)["modules"]
