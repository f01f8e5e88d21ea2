"""Programs for the controller: the runtime in C and assembly, the compiler's helper, and the stock programs."""

from neuroncore_rtl.kernels.control.compile import CompilationFailed, ControlProgram, compile_program
from neuroncore_rtl.kernels.control.flow import ROUNDS_CODE, ControlOperation, executed, flow_program
from neuroncore_rtl.kernels.control.stock import Block, section_words, semaphores_word, stock_program

__all__ = [
    "ROUNDS_CODE", "Block", "CompilationFailed", "ControlOperation", "ControlProgram", "compile_program", "executed",
    "flow_program", "section_words", "semaphores_word", "stock_program",
]  # fmt: skip
