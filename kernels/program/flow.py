"""Loops whose rounds only the run knows: registers, loops that count, and loops while a register is not 0.

A program's flow is what the controller does between its sections (:mod:`kernels.control.flow`). Whatever is appended
within a loop is in sections of its own, which run again in every round; a tensor that is used outside of the section
that writes it keeps its place.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

from neuroncore_rtl.kernels.control.flow import Code, ControlOperation, Label
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.source import caller, located
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import Instruction
from neuroncore_rtl.spec.memory_map import SBUF_PITCH_BITS, SBUF_WINDOW

__all__ = ["LOOP_ROUNDS", "Flow", "Register"]

LOOP_ROUNDS = 10_000
"""Of all loops of a run together, unless told: more are a loop that does not end."""


@dataclass(eq=False)
class Register:
    """A number that instructions and the controller read and write: an INT32 word, in partition 0 of SBUF.

    Arguments:
        word: the tensor, of one element.
        counter: whether a loop counts in it, so that nothing else may write it.
        written: whether it has a value yet.
    """

    word: Tensor
    counter: bool = False
    written: bool = False

    @property
    def address(self) -> int:
        """Where the controller finds it."""
        return SBUF_WINDOW + (self.word.partition << SBUF_PITCH_BITS) + self.word.address


class Sections(Protocol):
    """What a flow asks of its program (:class:`kernels.program.program.Program`)."""

    space: Allocator

    def append(self, instruction: Instruction) -> None:
        """Append an instruction."""

    def start_section(self) -> None:
        """Start the next section with what is appended from now on."""


class Flow:
    """The control flow of a program under construction.

    Arguments:
        program: the program.

    Attributes:
        rounds: the most of all loops together; a run that wants more is ended.
        registers: all of them.
    """

    def __init__(self, program: Sections):
        self.rounds = LOOP_ROUNDS
        self.registers: list[Register] = []
        self._program = program
        self._operations: list[ControlOperation] = []
        self._open: list[object] = []

    @property
    def is_plain(self) -> bool:
        """Whether there are sections alone, one after the other."""
        return all(operation.code == Code.RUN for operation in self._operations)

    @located
    def operations(self) -> list[ControlOperation]:
        """Return all operations, that of the last section and the end included; ValueError within a loop."""
        if self._open:
            raise ValueError(f"a loop must be left before the program is whole, not the one at {self._open[-1]}")
        self._program.start_section()
        return [*self._operations, ControlOperation(Code.END)]

    def ran(self, section: int) -> None:
        """Note that a section is whole: it runs here."""
        self._operations.append(ControlOperation(Code.RUN, section))

    # -- registers -------------------------------------------------------------------------------------------------

    @located
    def register(self, value: "int | Register | None" = None, name: str = "register") -> Register:
        """Return a new register, with a value that it has from here on, if any."""
        register = Register(self._program.space.sbuf(name, INT32, (1,), 1, kept=True))
        self.registers.append(register)
        if value is not None:
            self.set(register, value)
        return register

    @located
    def set(self, register: Register, value: "int | Register") -> None:
        """register = value, a number of 32 bits, or what another register holds."""
        self._check_writable(register)
        if isinstance(value, Register):
            self._check_written(value)
            self._between(Code.COPY, register.address, value.address)
        elif isinstance(value, Integral) and -(1 << 31) <= value < 1 << 31:
            self._between(Code.SET, register.address, int(value))
        else:
            raise ValueError(f"a register's value must be an integer of 32 bits, or a register, not {value!r}")
        register.written = True

    @located
    def load(self, register: Register, tensor: Tensor | HbmTensor) -> None:
        """register = the one element of a tensor of integers, anywhere."""
        self._check_writable(register)
        self._check_integer(tensor)
        self._program.append(dma_copy(register.word, _element(tensor)))
        register.written = True

    @located
    def store(self, tensor: Tensor | HbmTensor, register: Register) -> None:
        """The one element of a tensor of integers, anywhere = register."""
        self._check_written(register)
        self._check_integer(tensor)
        self._program.append(dma_copy(_element(tensor), register.word))

    # -- loops -----------------------------------------------------------------------------------------------------

    @located
    def loop(self, lower: int | Register, upper: int | Register, step: int = 1) -> AbstractContextManager[Register]:
        """Let what is appended within run for each of range(lower, upper, step); the register counts.

        Both bounds are read once, before the first round.

        Raises:
            ValueError: if the step is not a positive integer; if a bound is not a number of 32 bits or a register.
        """
        if not isinstance(step, Integral) or not 1 <= step < 1 << 31:
            raise ValueError(f"a loop's step must be an integer from 1 on, known beforehand, not {step!r}")
        counter, end = self.register(lower, "counter"), self.register(upper, "bound")
        counter.counter = True
        step_on = ControlOperation(Code.ADD, counter.address, int(step))
        return self._again(
            ControlOperation(Code.UNLESS_LESS, counter.address, end.address, Label(), caller()), counter, step_on
        )

    @located
    def loop_while(self, register: Register) -> AbstractContextManager[Register]:
        """Let what is appended within run again as long as the register is not 0 when a round would start."""
        self._check_written(register)
        return self._again(ControlOperation(Code.UNLESS, register.address, label=Label(), source=caller()), register)

    @contextmanager
    def _again(self, leave: ControlOperation, register: Register, *last: ControlOperation) -> Iterator[Register]:
        """Let what is appended within run again until a branch leaves it; last: operations at the end of each round."""
        self._program.start_section()
        self._open.append(leave.source)
        start = Label(len(self._operations))
        self._operations.append(leave)
        yield register
        self._program.start_section()
        self._operations += [*last, ControlOperation(Code.AGAIN, label=start, source=leave.source)]
        assert leave.label is not None
        leave.label.place = len(self._operations)
        self._open.pop()

    def _between(self, code: Code, a: int, b: int = 0) -> None:
        """Append an operation behind what was appended so far."""
        self._program.start_section()
        self._operations.append(ControlOperation(code, a, b, source=caller()))

    def _check_writable(self, register: Register) -> None:
        if register.counter:
            raise ValueError("a register that a loop counts in must not be written")

    def _check_written(self, register: Register) -> None:
        if not register.written:
            raise ValueError("a register must have a value before it is read")

    def _check_integer(self, tensor: Tensor | HbmTensor) -> None:
        if tensor.format.is_float or tensor.size != 1 or getattr(tensor, "partitions", 1) != 1:
            shape = (getattr(tensor, "partitions", 1), *tensor.shape)
            rule = "what is in a register must be one integer"
            raise ValueError(f"{tensor.name}: {rule}, not {shape} of {tensor.format.name}")


def _element(tensor: Tensor | HbmTensor) -> Tensor | HbmTensor:
    """Return a tensor of one element as one of the register's dimensions; what has 32 bits keeps them."""
    tensor = tensor.bitcast(INT32) if tensor.format.bits == INT32.bits else tensor
    return tensor.reshape(1) if isinstance(tensor, Tensor) else tensor.reshape(1, 1)
