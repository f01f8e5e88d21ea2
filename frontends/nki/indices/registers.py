"""Registers in kernels: numbers known only at run time, so Python cannot compute or branch on them."""

import ast
import linecache
from typing import Any

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.kernels.program.flow import Register
from neuroncore_rtl.kernels.source import Line

__all__ = ["VirtualRegister", "register_of", "tests_while"]

COMPUTE = "store it by nisa.register_store, compute in SBUF, and load the result by nisa.register_load"
NUMBER = "nl.fori_loop and nl.dynamic_range take it as a bound, .ap(scalar_offset=...) and .select as an index"
CONDITION = "use nl.while_loop, or select what is computed by nisa.tensor_copy_predicated"


class VirtualRegister:
    """A 32-bit number known only at run time; kernels access it as the tensor `word`, [1, 1]."""

    def __init__(self, register: Register, word: Any):
        self.register, self._word = register, word

    @property
    def word(self):
        if not self.register.written:
            raise ValueError("a register must have a value before it is read")
        return self._word

    __hash__ = object.__hash__


def _refusing(use: str, way: str):
    @from_kernel
    def refused(self, *others):
        raise ValueError(f"a register's number is known only when the kernel runs, so it cannot be {use}: {way}")

    return refused


for _name in ("__int__", "__index__", "__float__"):
    setattr(VirtualRegister, _name, _refusing("a number of Python", NUMBER))
for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "truediv", "rtruediv", "mod", "rmod", "neg",
    "lshift", "rshift", "and", "or",
):  # fmt: skip
    setattr(VirtualRegister, f"__{_name}__", _refusing("computed with", COMPUTE))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(VirtualRegister, f"__{_name}__", _refusing("compared", CONDITION))


def tests_while(line: Line) -> bool:
    """Return whether a line has the condition of a `while` statement that is only a name, attribute or element."""
    nodes = ast.walk(ast.parse("".join(linecache.getlines(line.file))))
    return any(
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Name | ast.Attribute | ast.Subscript)
        and node.test.lineno <= line.number <= (node.test.end_lineno or node.test.lineno)
        for node in nodes
    )


def register_of(given: object, what: str) -> Register:
    """Return the program's register behind a kernel's register; ValueError if `given` is not a register."""
    if not isinstance(given, VirtualRegister):
        raise ValueError(f"{what} must be a register of nisa.register_alloc, not {given!r}")
    return given.register
