"""Instructions of the vector and the scalar engine: one shape of up to four dimensions, up to three tensors.

The steps of a reduction's destination in the reduced dimensions are ignored. Elements are processed in row-major
order.
"""

from neuroncore_rtl.spec.isa.elementwise.index import Index
from neuroncore_rtl.spec.isa.elementwise.instruction import Elementwise
from neuroncore_rtl.spec.isa.elementwise.layout import ELEMENTWISE_BITS, ELEMENTWISE_FIELDS
from neuroncore_rtl.spec.isa.elementwise.opcode import (
    MOVES,
    OPERATIONS,
    OUTPUTS,
    SCALAR_OPCODES,
    SEARCH_ELEMENTS,
    STATS_ELEMENTS,
    STOCHASTIC,
    UNIT_OPCODES,
    UNIT_OPERATIONS,
    VALUES8,
    VECTOR_OPCODES,
    Opcode,
    transpose_block,
)
from neuroncore_rtl.spec.isa.elementwise.operands import (
    arithmetic_of,
    counts_of,
    extent,
    is_integer,
    uses,
    widens_to_odd,
)
from neuroncore_rtl.spec.isa.elementwise.rules import ELEMENTWISE_RULES, FUNCTION_COUNT, elementwise_violation

__all__ = [
    "ELEMENTWISE_BITS", "ELEMENTWISE_FIELDS", "ELEMENTWISE_RULES", "FUNCTION_COUNT", "MOVES", "OPERATIONS",
    "OUTPUTS", "SCALAR_OPCODES", "SEARCH_ELEMENTS", "STATS_ELEMENTS", "STOCHASTIC", "UNIT_OPCODES", "UNIT_OPERATIONS",
    "VALUES8", "VECTOR_OPCODES", "Elementwise", "Index", "Opcode", "arithmetic_of", "counts_of",
    "elementwise_violation", "extent", "is_integer", "transpose_block", "uses", "widens_to_odd",
]  # fmt: skip
