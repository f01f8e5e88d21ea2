"""Copies in SBUF of a tensor in another format or layout: loads, casts, and transpositions by the tensor engine."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.residents import Home, SbufCopy, ViewLine, copy_tile, laid_out, places_of
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.formats import INT8, Format

__all__ = ["resident_with"]


def resident_with(
    emission: Emission, home: Home, fmt: Format, rows: Sequence[ViewLine], fits: Callable[[SbufCopy], bool]
) -> SbufCopy | None:
    """Return a copy of a tensor that `fits`, with `rows` along the partitions if a new one is made; None if it cannot.

    Copies remain for later readers.
    """
    if home.pending is not None:
        home.pending.finish()
    exact = home.tensor.format
    alike = [one for one in home.residents if one.format is fmt]
    for one in alike:
        if fits(one):
            return one
    for one in home.residents:
        if one.format is exact and fits(one):
            return _cast(emission, home, one, fmt)
    if fmt is not INT8:
        for one in alike or [one for one in home.residents if one.format is exact]:
            if (found := _turned(emission, home, one, rows, fmt)) is not None and fits(found):
                return found
    return _loaded(emission, home, fmt, rows, fits)


def _cast(emission: Emission, home: Home, source: SbufCopy, fmt: Format) -> SbufCopy:
    found = SbufCopy(fmt, source.axes)
    for first, tile in source.tiles.items():
        found.tiles[first] = emission.chip.copied(tile, fmt, home.tensor.name)
    home.residents.append(found)
    return found


def _loaded(
    emission: Emission, home: Home, fmt: Format, rows: Sequence[ViewLine], fits: Callable[[SbufCopy], bool]
) -> SbufCopy | None:
    program, tensor = emission.program, home.tensor
    found = laid_out(program, fmt, tensor.size, rows, tensor.name)
    if found is None or not fits(found):
        return None
    # DMA moves adjacent elements in beats; if those would be along the partitions, the array transposes them.
    adjacent = next((axis for axis in found.axes if axis.step == 1), None)
    if adjacent is not None and adjacent.row and adjacent.extent > 1 and found.free_lines and fmt is not INT8:
        others = [(axis.extent, axis.step) for axis in found.axes if axis.step != 1]
        natural = laid_out(program, fmt, tensor.size, others, tensor.name)
        if natural is not None:
            _load(emission, home, natural)
            return _turned(emission, home, natural, rows, fmt)
    _load(emission, home, found)
    return found


def _load(emission: Emission, home: Home, found: SbufCopy) -> None:
    tensor = emission.settled(home.tensor)
    for source, tile in found.source(tensor):
        copy_tile(emission.program, tile, source, emission.ports)
    home.residents.append(found)


def _turned(emission: Emission, home: Home, source: SbufCopy, rows: Sequence[ViewLine], fmt: Format) -> SbufCopy | None:
    """Return a copy with other rows, transposed by the tensor engine; None if that needs no transposition."""
    program, config = emission.program, emission.program.config
    if source.format is not fmt:
        source = _cast(emission, home, source, fmt)
    target = laid_out(program, fmt, home.tensor.size, rows, home.tensor.name)
    if target is None:
        return None
    sides = (source.axes, target.axes)
    cuts = sorted({edge for axes in sides for axis in axes for edge in (axis.step, axis.step * axis.extent)})
    if any(high % low for low, high in pairwise(cuts)):
        return None
    lines: dict[tuple[bool, bool], list[ViewLine]] = {}
    for low, high in pairwise(cuts):
        owners = (next(axis for axis in axes if axis.step <= low < axis.step * axis.extent) for axes in sides)
        before, after = (axis.row > 0 for axis in owners)
        lines.setdefault((before, after), []).append((high // low, low))
    if (True, False) not in lines or (False, True) not in lines:
        return None
    (count, step), (height, inner) = lines[True, False].pop(0), lines[False, True].pop(0)
    for place in places_of([line for some in lines.values() for line in some]):
        for part in cut(0, height, program.lanes):
            first = place + part.start * inner
            for few in cut(0, count, config.psum_words // program.lanes * program.lanes or program.lanes):
                tiles = []
                for run in cut(few.start, few.stop, program.lanes):
                    tiles.append(
                        source.legal(first + run.start * step, [(length(run), step)], [(length(part), inner)], config)
                    )
                out = target.legal(first + few.start * step, [(length(part), inner)], [(length(few), step)], config)
                if out is None or None in tiles:
                    return None
                emission.chip.move(out, emission.chip.turned([one for one in tiles if one is not None]))
    home.residents.append(target)
    return target
