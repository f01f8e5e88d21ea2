"""From RTLIL to netlists, by the Yosys that comes with Amaranth.

Modules are optimised one by one, the lanes with all that is below them; then the block is flattened down to its lanes.
"""

import json
from collections.abc import Mapping

from amaranth._toolchain.yosys import find_yosys

__all__ = ["netlists"]

# Not `opt -full`, which uses that values are undefined: results must be those of the Verilog in every case.
OPTIMISED = """\
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

# Nothing is cleaned up any more, which takes long where there are thousands of instances.
FLATTENED = """\
flatten -noscopeinfo
opt_expr
opt_merge
opt_expr
"""


def netlists(block: str, lanes: tuple[str, ...], texts: Mapping[str, str]) -> dict[str, dict]:
    """Return a block and its lanes as Yosys' `write_json` has them, by name.

    Arguments:
        block: name of the module. lanes: how those of its lanes begin.
        texts: RTLIL of it and of all modules below it, by name.
    """
    kept = [name for name in texts if name.startswith(lanes) and name != block]
    script = []
    for name, text in texts.items():
        if name in kept:
            text = text.replace(f"module \\{name}\n", f"attribute \\keep_hierarchy 1\nmodule \\{name}\n")
        script.append(f"read_rtlil <<rtlil\n{text}\nrtlil\n")
    lanes_alone = f"select {' '.join(kept)}\nflatten -noscopeinfo\nselect -clear\n"
    script.append(f"hierarchy -top {block}\nproc -norom\n{lanes_alone}{OPTIMISED}")
    script.append(f"select {block}\n{FLATTENED}select -clear\nmemory_collect\nwrite_json\n")
    text = find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], "".join(script), ignore_warnings=True)
    return json.loads(text)["modules"]
