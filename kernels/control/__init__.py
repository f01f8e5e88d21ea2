"""Programs for the controller: runtime in C and assembly, compiler, and stock programs."""

from neuroncore_rtl.kernels.control.compile import CompilationFailed, ControlProgram, compile_program
from neuroncore_rtl.kernels.control.flow import ROUNDS_CODE, ControlOperation, flow_program, trace_operations
from neuroncore_rtl.kernels.control.stock import Block, section_words, semaphores_word, stock_program

__all__ = [
    "ROUNDS_CODE", "Block", "CompilationFailed", "ControlOperation", "ControlProgram", "compile_program",
    "flow_program", "section_words", "semaphores_word", "stock_program", "trace_operations",
]  # fmt: skip
