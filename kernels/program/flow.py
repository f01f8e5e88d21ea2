"""Control flow of a program: registers, counted loops, and loops that run while a register is not 0.

The controller executes it between sections (`kernels.control.flow`). The body of a loop consists of separate
sections. A tensor that is used outside the section that writes it keeps its address during the whole program.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

from neuroncore_rtl.kernels.control.flow import Code, ControlOperation, Label
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import caller, located
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import Instruction
from neuroncore_rtl.spec.memory_map import SBUF_PITCH_BITS, SBUF_WINDOW

__all__ = ["LOOP_ROUNDS", "Flow", "Register"]

LOOP_ROUNDS = 10_000
"""Default limit of the rounds of all loops together, to stop endless loops."""


@dataclass(eq=False)
class Register:
    """Integer that instructions and the controller access: an INT32 word in partition 0 of SBUF.

    `counter` marks the counter of a loop, which only this loop may write. `written` tells whether the register has a
    value.
    """

    word: Tensor
    counter: bool = False
    written: bool = False

    @property
    def address(self) -> int:
        """Address of the register in the controller's address space."""
        return SBUF_WINDOW + (self.word.partition << SBUF_PITCH_BITS) + self.word.address


class Sections(Protocol):
    """Interface of `kernels.program.program.Program` that control flow needs."""

    space: Allocator
    stochastic: bool

    def append(self, instruction: Instruction) -> None:
        """Append an instruction."""

    def start_section(self) -> None:
        """Start the next section."""


class Flow:
    """Control flow of a program: registers and loops; a run stops when all loops together exceed `rounds` rounds.

    If results are rounded stochastically, the register `draws` counts runs of sections in loops, to draw new words.
    """

    def __init__(self, program: Sections):
        self.rounds = LOOP_ROUNDS
        self.draws: Register | None = None
        self.registers: list[Register] = []
        self._program = program
        self._operations: list[ControlOperation] = []
        self._open: list[object] = []

    @property
    def is_plain(self) -> bool:
        """Whether the program has no registers or loops, so that its sections run in sequence."""
        return all(operation.code == Code.RUN for operation in self._operations)

    @located
    def operations(self) -> list[ControlOperation]:
        """Return all operations, including the last section and the end; ValueError within a loop."""
        if self._open:
            raise ValueError(f"the program must end outside of loops, but the loop at {self._open[-1]} is open")
        self._program.start_section()
        return [*self._operations, ControlOperation(Code.END)]

    def add_section(self, section: int) -> None:
        """Append the operation that runs a section."""
        self._operations.append(ControlOperation(Code.RUN, section))

    @located
    def register(self, value: "int | Register | None" = None, name: str = "register") -> Register:
        """Return a new register, set to `value` at this point if one is given."""
        register = Register(self._program.space.sbuf(name, INT32, (1,), 1, kept=True))
        self.registers.append(register)
        if value is not None:
            self.set(register, value)
        return register

    @located
    def set(self, register: Register, value: "int | Register") -> None:
        """Append the assignment register = value; the value is a 32-bit integer or another register."""
        self._check_writable(register)
        if isinstance(value, Register):
            self._check_written(value)
            self._between(Code.COPY, register.address, value.address)
        elif isinstance(value, Integral) and -(1 << 31) <= value < 1 << 31:
            self._between(Code.SET, register.address, int(value))
        else:
            raise ValueError(f"a register's value must be a 32-bit integer or a register, not {value!r}")
        register.written = True

    @located
    def load(self, register: Register, tensor: Tensor | HbmTensor) -> None:
        """Append the load of a register from an integer tensor of one element, in any memory."""
        self._check_writable(register)
        self._check_integer(tensor)
        self._program.append(dma_copy(register.word, _element(tensor)))
        register.written = True

    @located
    def store(self, tensor: Tensor | HbmTensor, register: Register) -> None:
        """Append the store of a register to an integer tensor of one element, in any memory."""
        self._check_written(register)
        self._check_integer(tensor)
        self._program.append(dma_copy(_element(tensor), register.word))

    @located
    def loop(self, lower: int | Register, upper: int | Register, step: int = 1) -> AbstractContextManager[Register]:
        """Repeat the instructions that are appended in the context, for each value of range(lower, upper, step).

        The returned register is the counter. Both bounds, 32-bit integers or registers, are read once, before the first
        round. The step is a positive constant. Raises ValueError if a bound or the step is not of this kind.
        """
        if not isinstance(step, Integral) or not 1 <= step < 1 << 31:
            raise ValueError(f"a loop's step must be a constant integer of at least 1, not {step!r}")
        counter, end = self.register(lower, "counter"), self.register(upper, "bound")
        counter.counter = True
        step_on = ControlOperation(Code.ADD, counter.address, int(step))
        return self._again(
            ControlOperation(Code.UNLESS_LESS, counter.address, end.address, Label(), caller()), counter, step_on
        )

    @located
    def loop_while(self, register: Register) -> AbstractContextManager[Register]:
        """Repeat the instructions appended in the context while the register is not 0; tested before each round."""
        self._check_written(register)
        return self._again(ControlOperation(Code.UNLESS, register.address, label=Label(), source=caller()), register)

    @contextmanager
    def _again(self, branch: ControlOperation, register: Register, *last: ControlOperation) -> Iterator[Register]:
        if self._program.stochastic and self.draws is None:
            self.draws = self.register(0, "draws")
        self._program.start_section()
        self._open.append(branch.source)
        start = Label(len(self._operations))
        self._operations.append(branch)
        yield register
        self._program.start_section()
        self._operations += [*last, ControlOperation(Code.AGAIN, label=start, source=branch.source)]
        assert branch.label is not None
        branch.label.place = len(self._operations)
        self._open.pop()

    def _between(self, code: Code, a: int, b: int = 0) -> None:
        self._program.start_section()
        self._operations.append(ControlOperation(code, a, b, source=caller()))

    def _check_writable(self, register: Register) -> None:
        if register.counter:
            raise ValueError("the counter of a loop must not be written")

    def _check_written(self, register: Register) -> None:
        if not register.written:
            raise ValueError("a register must have a value before it is read")

    def _check_integer(self, tensor: Tensor | HbmTensor) -> None:
        if tensor.format.is_float or tensor.size != 1 or getattr(tensor, "partitions", 1) != 1:
            shape = (getattr(tensor, "partitions", 1), *tensor.shape)
            rule = "the tensor of a register must be one integer"
            raise ValueError(f"{tensor.name}: {rule}, not {shape} of {tensor.format.name}")


def _element(tensor: Tensor | HbmTensor) -> Tensor | HbmTensor:
    tensor = tensor.bitcast(INT32) if tensor.format.bits == INT32.bits else tensor
    return tensor.reshape(1) if isinstance(tensor, Tensor) else tensor.reshape(1, 1)
