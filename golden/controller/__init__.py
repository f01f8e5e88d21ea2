"""Controller: an interpreter of RISC-V RV32IM in machine mode, with its memory and timer."""

from neuroncore_rtl.golden.controller.csr import ControlRegisters
from neuroncore_rtl.golden.controller.decode import RiscvInstruction, decode_riscv
from neuroncore_rtl.golden.controller.hart import Hart, Retired
from neuroncore_rtl.golden.controller.memory import AccessFault, AddressMap, Bus, LocalMemory, Timer
from neuroncore_rtl.golden.controller.trap import Cause, Trap

__all__ = [
    "AccessFault", "AddressMap", "Bus", "Cause", "ControlRegisters", "Hart", "LocalMemory", "Retired",
    "RiscvInstruction", "Timer", "Trap", "decode_riscv",
]  # fmt: skip
