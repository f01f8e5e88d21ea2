"""Check of the vector instruction's recipe: golden against the oracle, two hardware lanes against golden."""

import numpy as np

from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.kernels.program.instructions import squared_difference
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import AluOp, Opcode
from tests.golden.vector.test_vector import test_instruction_is_the_oracle
from tests.hdl.vector.test_lane import Case, elements, operands, played, rounded

test_instruction_is_the_oracle(Opcode.SQUARED_DIFFERENCE)

rng = np.random.default_rng(1)
a, b = operands(rng)
difference = alu(AluOp.SUBTRACT, a, b, False)
expected = rounded(alu(AluOp.MULTIPLY, difference, difference, False), BF16)
[results] = played([Case(elements(Opcode.SQUARED_DIFFERENCE, dst=BF16), expected, a, b)], rng)
assert [words for _, words, _ in results] == expected.tolist()

space = Program(Config(rows=4, columns=4)).space
x = space.sbuf("x", FP32, (4, 8))
assert squared_difference(x, x, x).name == "SQUARED_DIFFERENCE"
