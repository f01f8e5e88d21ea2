"""A core's list of collectives as a program: records of its collective queue, and nothing else."""

from collections.abc import Sequence

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.collective import Collective

__all__ = ["collectives_program"]


def collectives_program(config: Config, instructions: Sequence[Collective], base: int) -> Program:
    """Return the program of one core that executes collectives in order.

    Arguments:
        config: of a core of the instance.
        instructions: all of one core; none, and the program ends at once. Their addresses are those in its HBM.
        base: HBM address of the program's image, a multiple of 128, behind everything that they touch.

    Raises:
        ValueError: if a collective is not legal, or touches what is not below `base`.
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
