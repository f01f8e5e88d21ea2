"""Arguments of wrong types: every public function of programs and of the library names the argument in a ValueError."""

import inspect
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import chain
from pkgutil import iter_modules
from typing import get_args, get_origin, get_type_hints

import numpy as np
import pytest

from neuroncore_rtl.kernels import library, program
from neuroncore_rtl.kernels.library.attention_tile import Head
from neuroncore_rtl.kernels.library.conv2d import ConvWindow
from neuroncore_rtl.kernels.library.postnorm import Scales
from neuroncore_rtl.kernels.library.stochastic import Problem
from neuroncore_rtl.kernels.program import Allocator, Draw, HbmTensor, Program, Tensor, instructions
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FP32, FloatFormat
from neuroncore_rtl.spec.isa import AluOp, Index, Storage
from neuroncore_rtl.spec.isa.collective import Group

SIZE = 4
WRONG = (None, 3, "x", np.zeros((SIZE, SIZE)), [3], object())

METHODS = {
    getattr(one, name): one
    for one in (Allocator, Program, Tensor, HbmTensor, Rows)
    for name in dir(one)
    if name[0] != "_" and name not in ("read", "write", "elements") and inspect.isfunction(getattr(one, name))
}
"""Public methods, and a class that has each; those of memories in numpy have numpy's errors."""


def public() -> list[Callable]:
    modules = [import_module(f"{library.__name__}.{one.name}") for one in iter_modules(library.__path__)]
    modules = [one for one in (*modules, program, instructions) if hasattr(one, "__all__")]
    named = (getattr(module, name) for module in modules for name in module.__all__)
    return [*dict.fromkeys(one for one in chain(named, METHODS) if inspect.isfunction(one))]


def samples(within: Program) -> dict[object, object]:
    """An argument for each type of an annotation; all arrays are square, so that most calls succeed."""
    space = within.space
    on_chip, in_hbm = space.sbuf("chip", "bf16", (SIZE,), SIZE), space.hbm("hbm", "bf16", (SIZE, SIZE))
    vector = space.hbm("vector", "fp32", (SIZE,))
    problem = Problem(space.sbuf("inputs", "fp32", (2, SIZE)), space.sbuf("targets", "fp32", (2,)), 1.0)
    arrays = {Rows: Rows((on_chip,)), Tensor: on_chip, HbmTensor: in_hbm, np.ndarray: np.ones((SIZE, SIZE))}
    parts = {Scales: Scales(vector, vector), Problem: problem, Head: Head(in_hbm, in_hbm, in_hbm)}
    choices = {AluOp: AluOp.ADD, Storage: Storage.SBUF, FloatFormat: FP32, ConvWindow: ConvWindow(), Draw: Draw(seed=1)}
    others = {Index: Index(base=0, partition=0, steps=(1,)), Group: Group(base=0, stride=1, ranks=2)}
    plain = {str: "gelu", int: SIZE, float: 0.5, bool: False, slice: slice(0, SIZE)}
    return {Program: within, Allocator: space, Config: within.config} | arrays | parts | choices | others | plain


def fitting(space: Allocator) -> dict[str, object]:
    """Arguments of functions that need another shape, by function and name."""
    few = Rows((space.sbuf("few", "bf16", (2,), SIZE),))
    many = Rows((space.sbuf("many", "fp32", (8,), SIZE),))
    numbers = Rows((space.sbuf("numbers", "uint32", (8,), SIZE),))
    vector = space.hbm("row", "fp32", (SIZE,))
    return {
        "conv2d x": space.hbm("images", "bf16", (SIZE, SIZE, SIZE)),
        "conv2d w": space.hbm("w", "bf16", (1, 1, SIZE, SIZE)),
        "column_of bias": vector, "postnorm bias": vector, "rope cosines": few, "rope sines": few,
        "topk values": many, "topk indices": numbers, "topk x": many, "row_strips strips": 1,
        "multiply_moving result": space.psum("sums", "fp32", (SIZE,), SIZE), "hide scores": many.tiles[0],
    }  # fmt: skip


def usual(hint: object, known: dict[object, object]) -> object:
    """The first of `known` that an annotation allows."""
    inner = get_args(hint)
    if get_origin(hint) is Callable:
        return lambda *_: None
    if hint in known or not inner:
        return known.get(hint)
    return [usual(inner[0], known)] if issubclass(get_origin(hint), Iterable) else usual(inner[0], known)


def outcome(function: Callable, wrong: str | None = None, value: object = None) -> Exception | None:
    """Call a function with usual arguments, except for one; return its error."""
    within = Program(PRESETS["tiny"])
    known, special, hints = samples(within), fitting(within.space), get_type_hints(function)
    args, options = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind == inspect.Parameter.VAR_KEYWORD:
            continue
        given = value if name == wrong else parameter.default
        if given is inspect.Parameter.empty:
            given = usual(hints[name], known) if name in hints else known[METHODS[function]]
        if name != wrong:
            given = special.get(f"{function.__name__} {name}", given)
        if parameter.kind == inspect.Parameter.KEYWORD_ONLY:
            options[name] = given
        else:
            args.append(given)
    try:
        function(*args, **options)
    except Exception as error:
        return error
    return None


CALLS = [
    pytest.param(function, name, id=f"{function.__qualname__}-{name}")
    for function in public()
    for name, parameter in inspect.signature(function).parameters.items()
    if name != "self" and parameter.kind != inspect.Parameter.VAR_KEYWORD
]


@pytest.mark.parametrize("function, name", CALLS)
def test_a_wrong_type_is_refused_in_a_sentence(function, name):
    for value in WRONG:
        error = outcome(function, name, value)
        assert error is None or isinstance(error, ValueError) and re.search(" must | is not possible ", str(error)), (
            f"{value!r}: {type(error).__name__}: {error}"
        )


def test_most_calls_with_usual_arguments_succeed():
    functions = public()
    assert len(functions) > 60 and sum(outcome(one) is None for one in functions) > len(functions) * 0.6
