"""The controller as an interpreter of RISC-V instructions: RV32IM, machine mode, with its memory and timer."""

from golden.controller.csr import ControlRegisters
from golden.controller.decode import Instruction, decode
from golden.controller.hart import Hart, Retired
from golden.controller.memory import AccessFault, AddressMap, Bus, LocalMemory, Timer
from golden.controller.trap import Cause, Trap

__all__ = [
    "AccessFault", "AddressMap", "Bus", "Cause", "ControlRegisters", "Hart", "Instruction", "LocalMemory", "Retired",
    "Timer", "Trap", "decode",
]  # fmt: skip
