"""Pages of runs of a small product, and the data in them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroncore_rtl import Program, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.run.page.page import write_page
from neuroncore_rtl.run.page.parts import PageParts
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result

__all__ = ["INPUTS", "TEXT", "data_of", "product", "wrong_page"]

INPUTS = {"a": np.arange(48).reshape(12, 4) % 7, "b": np.arange(240).reshape(12, 20) % 5}

TEXT = "</script><script>alert(1)</script><!-- & \u2028 @@data@@"
"""A setting that no page may execute."""


def product(program: Program) -> None:
    space = program.space
    a, b, c = space.hbm("a", "bf16", (12, 4)), space.hbm("b", "bf16", (12, 20)), space.hbm("c", "fp32", (4, 20))
    sums, out = space.psum("sums", "fp32", (20,), 4), space.sbuf("out", "fp32", (20,), 4)
    for first in range(0, 12, 4):
        stationary, moving = space.sbuf("stationary", "bf16", (4,), 4), space.sbuf("moving", "bf16", (20,), 4)
        program.append(dma_copy(stationary, a[first : first + 4]))
        program.append(dma_copy(moving, b[first : first + 4]))
        program.append(load_stationary(stationary))
        program.append(multiply_moving(sums, moving, accumulate=first > 0))
    program.append(tensor_copy(out, sums))
    program.append(dma_copy(c, out))


def data_of(page: Path) -> dict:
    """Return the JSON in a page."""
    (text,) = re.findall(r'<script type="application/json" id="run">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(text)


def wrong_page(golden: Result) -> Path:
    """Return the page of a run that computed golden's results, except for two elements of c: [2, 9] and [3, 6]."""
    assert golden.expected is not None and golden.image.space is not None
    memories = {"hbm": golden.hbm.copy()}
    codes = golden.image.space.hbm_tensors[2].elements(memories["hbm"][0])
    codes[2, 9] ^= 1 << 31
    codes[3, 6] = 0
    found = {"memories": memories, "compared_parts": {"HBM": 1000}, "mismatched_parts": {"HBM": 5}}
    wrong = replace(golden, **found, differences=("HBM 0x0: RTL 00, golden 01",))
    parts = PageParts()
    parts.note(wrong, 0)
    return write_page(Report(test="wrong", settings={"TEXT": TEXT}, compared=1000, mismatches=5), parts)
