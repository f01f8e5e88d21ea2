"""Program of one core's list of collectives."""

from collections.abc import Sequence

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.program.source import located
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.collective import Collective

__all__ = ["collectives_program"]


@located
def collectives_program(config: Config, instructions: Sequence[Collective], base: int) -> Program:
    """Return the program of one core that executes its collectives in order.

    The image starts at `base`, a multiple of 128, above all regions that the collectives touch in HBM.

    Raises ValueError if a collective is illegal, or touches an address from `base` on.
    """
    program = Program(config, base, core=instructions[0].core if instructions else 0)
    for instruction in instructions:
        program.append(instruction)
        end = max((region.span[1] for region in (*instruction.reads, *instruction.writes)), default=0)
        if end > base:
            raise ValueError(
                f"base must be at least {end:#x}, the end of what {instruction.name} touches, not {base:#x}"
            )
    return program
