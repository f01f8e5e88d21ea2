"""Conversion of RTLIL to netlists by Amaranth's Yosys.

Lanes are flattened and optimised per module; the block is then flattened down to its lanes.
"""

import json
from collections.abc import Mapping

from neuroncore_rtl.hdl.verilog.yosys import run_yosys

__all__ = ["netlists"]

# Not `opt -full`: it exploits undefined values, but results must always equal those of the Verilog.
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

# Without a final cleanup, which is slow with thousands of instances.
FLATTENED = """\
flatten -noscopeinfo
opt_expr
opt_merge
opt_expr
"""


def netlists(block: str, lanes: tuple[str, ...], texts: Mapping[str, str]) -> dict[str, dict]:
    """Return a block and its lanes in the form of Yosys' `write_json`, by name.

    `lanes` are name prefixes of its lanes' modules; `texts` is the RTLIL of the block and all modules below it.
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
    text = run_yosys("".join(script))
    return json.loads(text)["modules"]
