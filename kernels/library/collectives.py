"""Lists of collectives of one core: their program, and an all-reduce in steps along the dimensions of a torus."""

from collections.abc import Sequence
from dataclasses import replace

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import (
    COLLECTIVE_ALIGNMENT,
    Collective,
    CollectiveKind,
    Group,
    best_chunk,
    element_bytes,
)
from neuroncore_rtl.spec.link import CORES_PER_CHIP

__all__ = ["collectives_program", "stepwise_all_reduce", "torus_all_reduce"]


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


@located
def stepwise_all_reduce(whole: Collective, groups: Sequence[Group]) -> list[Collective]:
    """Return the collectives of one core that add a vector over `groups`, one group after the other.

    `whole` is an ALL_REDUCE: its core, block, format and rounding; its group is not used. The core reduces and scatters
    the vector over the first group, reduces its block over the other groups in the same way, and gathers the blocks.
    Elements that do not fill a line of 64 bytes on every rank follow, at the end, as an ALL_REDUCE over each group.

    Every group contains the core, and the cores that `groups` join make up a grid, of which each rank passes the groups
    in the same order. The result has the same bits on all of them. An element is added over the first group, the sum
    over the second, and so on; a BF16 vector is rounded once for each group.

    Raises ValueError if `whole` is not an ALL_REDUCE, or a group lacks its core.
    """
    if whole.kind != CollectiveKind.ALL_REDUCE:
        raise ValueError(f"whole must be an ALL_REDUCE, not {whole.name}")
    group, *others = groups
    if whole.core not in group.cores:
        raise ValueError(f"groups must contain core {whole.core}, not {group}")
    rank = group.cores.index(whole.core)
    if not others:
        return [_step(whole, CollectiveKind.ALL_REDUCE, group, rank)]
    size = element_bytes(whole.dtype)
    line = COLLECTIVE_ALIGNMENT // size
    block = whole.count // (group.ranks * line) * line
    taken, pitch = block * group.ranks, block * size
    steps = []
    if block:
        own = whole.dst + rank * pitch
        part = replace(whole, count=block, pitch=pitch)
        steps += [
            _step(replace(part, dst=own), CollectiveKind.REDUCE_SCATTER, group, rank),
            *stepwise_all_reduce(replace(whole, count=block, src=own, dst=own), others),
            _step(replace(part, src=own), CollectiveKind.ALL_GATHER, group, rank),
        ]
    if taken < whole.count:
        place = {"src": whole.src + taken * size, "dst": whole.dst + taken * size}
        for number, each in enumerate(groups):
            rest = replace(whole, count=whole.count - taken, **place | ({"src": place["dst"]} if number else {}))
            steps.append(_step(rest, CollectiveKind.ALL_REDUCE, each, each.cores.index(whole.core)))
    return steps


def _step(part: Collective, kind: CollectiveKind, group: Group, rank: int) -> Collective:
    return replace(part, kind=kind, group=group, rank=rank, chunk=best_chunk(part.count, group.ranks, kind))


@located
def torus_all_reduce(instance: Instance, whole: Collective) -> list[Collective]:
    """Return the collectives of one core that add a vector over all chips of a torus, in steps along its dimensions.

    `whole` is an ALL_REDUCE of one core of each chip. The first core of a chip adds along its row, then along its
    column; the second core along its column first. If both add at the same time, as two groups, one uses the links of
    the rows while the other uses those of the columns, so all four links of a chip carry data in every step. Order and
    rounding are those of `stepwise_all_reduce`.

    Raises ValueError if the instance is not a torus, or `whole` is not an ALL_REDUCE of one core of each chip.
    """
    if instance.topology != Topology.TORUS:
        raise ValueError(f"topology must be torus, not {instance.topology.value}")
    chip, position = divmod(whole.core, CORES_PER_CHIP)
    every = Group(position, CORES_PER_CHIP, instance.chips)
    if sorted(whole.group.cores) != sorted(every.cores):
        raise ValueError(f"group must be {every}, one core of each chip, not {whole.group}")
    row, column = divmod(chip, instance.width)
    along_row = Group(every.cores[row * instance.width], CORES_PER_CHIP, instance.width)
    rows = instance.chips // instance.width
    along_column = Group(every.cores[column], CORES_PER_CHIP * instance.width, rows)
    return stepwise_all_reduce(whole, (along_column, along_row) if position else (along_row, along_column))
