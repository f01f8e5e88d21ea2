"""Kernels in the traces of autocomp, nested calls `CodeCandidate(parent=CodeCandidate(...), code="...", score=1.0)`."""

import ast
from pathlib import Path

__all__ = ["candidate"]

_IMPORTS = """import math
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
from neuronxcc.nki.language import par_dim

"""
"""What autocomp's test harnesses import before a candidate."""


def candidate(checkout: Path, trace: str, number: int) -> str:
    """Return the Python text of a trace's candidate, counted from the first ancestor; nothing is executed.

    Raises ValueError if the checkout has no such trace.
    """
    file = next(checkout.glob(f"examples/*/{trace}_trace.py"), None)
    if file is None:
        raise ValueError(f"AUTOCOMP must name a checkout with examples/*/{trace}_trace.py, not {checkout}")
    text = file.read_text()
    call: ast.expr = ast.parse(text, mode="eval").body
    found = []
    while isinstance(call, ast.Call):
        fields = {keyword.arg: keyword.value for keyword in call.keywords}
        found.append(ast.literal_eval(fields["code"]))
        call = fields["parent"]
    return _IMPORTS + found[-1 - number]
