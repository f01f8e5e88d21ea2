"""Playable units (`run.harness.player`) on a compiled library, with the player's cases and idle cycles."""

from collections.abc import Mapping

import numpy as np
from amaranth.hdl import Value

from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.harness.player import Playable, PlayedUnit, pack_inputs
from neuroncore_rtl.tb.campaign.mutation.library import Library, MutantModel
from neuroncore_rtl.tb.campaign.mutation.netlist import ports_of

__all__ = ["inner_unit", "play"]

_BUBBLES = 0.25  # share of cycles without a case
_TAIL = 256


def inner_unit(unit: Playable):
    """Return the component of a playable unit."""
    return unit.unit if isinstance(unit, PlayedUnit) else unit


def play(unit: Playable, library: Library, mutant: int, fields: Mapping[str, np.ndarray], bubbles: bool) -> Outcome:
    """Play cases (see `PlayerWork`) through the netlist of a unit."""
    count = len(next(iter(fields.values())))
    idle = np.random.default_rng(1).random(2 * count) < _BUBBLES * bubbles
    starts = np.flatnonzero(~idle)[:count] * unit.interval
    cycles = int(starts[-1]) + unit.latency + _TAIL
    valid = np.zeros(cycles, bool)
    valid[starts] = True
    latest = np.maximum(np.cumsum(valid) - 1, 0)
    model = library.model()
    model.set("mutant", mutant)
    if isinstance(unit, PlayedUnit):
        words = _of_inner(unit, model, fields, valid, latest)
    else:
        words = _of_itself(unit, model, fields, valid, latest)
    return Outcome(ending=Ending.FINISHED, cycles=0, memories={"results": words, "unknown": np.zeros(0, np.int64)})


def _of_inner(unit: PlayedUnit, model: MutantModel, fields, valid, latest) -> np.ndarray:
    names = _names(unit.unit)
    given = {}
    for name, values in fields.items():
        column = np.where(valid, values[latest], ~values[latest]).astype("<u4")
        late = unit.late.get(name, 0)
        column = np.concatenate([np.zeros(late, "<u4"), column])[: len(column)]
        width = len(Value.cast(getattr(unit.unit, name)))
        column &= np.uint32((1 << width) - 1)
        given[names[name]] = column.view(np.uint8).reshape(-1, 4)[:, : _size(width)]
    if unit.iterative:
        given[names["start"]] = valid.astype(np.uint8)[:, None]
    (shown,) = model.trace(given, [names[unit.output]]).T
    return shown[np.flatnonzero(valid) + unit.latency]


def _of_itself(unit: Playable, model: MutantModel, fields, valid, latest) -> np.ndarray:
    names = _names(unit)
    words = pack_inputs(unit.layout, **fields)[:, ::-1][latest]
    words = np.where(valid[:, None], words, ~words)
    spare = -unit.layout.size % 8
    words[:, -1] &= 0xFF >> spare
    given = {names["word"]: words, names["valid"]: valid.astype(np.uint8)[:, None]}
    results, shown = model.trace(given, [names["result"], names["result_valid"]]).T
    return results[shown == 1]


def _names(component) -> dict[str, str]:
    signals = {id(signal): port.name for port, signal in ports_of(component)}
    members = component.signature.members
    return {name: signals.get(id(Value.cast(getattr(component, name)))) for name in members if members[name].is_port}


def _size(width: int) -> int:
    return next(size for size in (1, 2, 4) if width <= 8 * size)
