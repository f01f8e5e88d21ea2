from collections import Counter
from dataclasses import dataclass

import pytest

from neuroncore_rtl.hdl.dma.job import Formats, JobRows, Side
from neuroncore_rtl.hdl.dma.sequencer import DmaSequencer
from neuroncore_rtl.spec.isa import Cause, Storage
from tests.hdl.simulation import drive, expect, pulse, simulated, slow

SEED = 4181
SIDE, ROWS, FORMATS = (kind.as_shape() for kind in (Side, JobRows, Formats))

PORTS = {
    **{"offered": "i.valid", "refused": "refused.valid", "cause": "refused.cause", "number": "refused.number"},
    **{name: f"answers.{name}" for name in ("closable", "retired", "quiet", "idle", "failed")},
    **{name: name for name in ("src_busy", "dst_done", "writer_free", "undelivered", "row_failed", "row_number")},
}
"""Ports of the inputs."""

NUMBERS = {"cause": 8, "number": 32, "row_number": 32}
"""Widths of the inputs that are numbers."""

USUAL = {
    **{"offered": 0.8, "indexed": 0.3, "near": 0.2, "refused": 0.02, "reset": 0},
    **{"src_busy": 0.3, "dst_done": 0.5, "writer_free": 0.7, "undelivered": 0.03, "row_failed": 0.05},
    **{"closable": 0.8, "retired": 0.3, "quiet": 0.6, "idle": 0.6, "failed": 0.01},
}
"""Probability per cycle of each input; `indexed`: a copy has row numbers; `near`: a side of a copy is on chip."""

PHASES = (
    {},
    {"undelivered": 0, "failed": 0, "row_failed": 0, "refused": 0},
    {"indexed": 0, "src_busy": 0, "dst_done": 0.2},
    {"indexed": 1, "row_failed": 0.5, "idle": 0.4},
    {"idle": 0.1, "closable": 0.4, "near": 0.1},
    {"near": 0.9, "failed": 0},
    {"offered": 0.1, "refused": 0.6},
    {"undelivered": 0.8, "writer_free": 0.1, "quiet": 0.2},
    {"failed": 0.5, "writer_free": 0.3, "quiet": 0.2},
    dict.fromkeys(USUAL, 0.5) | {"reset": 0.05},
)
"""Phases of the test, each of `CYCLES` cycles: the probabilities that differ from `USUAL`."""

CYCLES = 250

ANOTHER = 0.4
"""Probability per cycle that the copy on offer changes, even if it was not accepted."""

RESET = 0.3
"""Probability per cycle of a reset of a sequencer that has failed."""


@dataclass(frozen=True)
class Copy:
    src: int = 0
    dst: int = 0
    formats: int = 0
    rows: int = 0

    @property
    def reads(self) -> int:
        return SIDE.from_bits(self.src).storage.value

    @property
    def writes(self) -> int:
        return SIDE.from_bits(self.dst).storage.value

    @property
    def indexed(self) -> int:
        return ROWS.from_bits(self.rows).on


class Model:
    """Model of the sequencer: the copies at the source and at the destination; `last` is the last accepted copy."""

    def __init__(self, last: Copy):
        self.last = last
        self.source: Copy | None = None
        self.target: Copy | None = None
        self.count = 0
        self.retired = False
        self.error: tuple[int, int, int] | None = None

    def takes(self, given) -> bool:
        copy, before = given["copy"], self.target
        if not given["offered"] or given["src_busy"] or self.source or self.error:
            return False
        if before and (copy.indexed or copy.reads == before.writes):
            return False
        return copy.reads != Storage.HBM or given["idle"]

    def ends(self, given) -> str:
        """Return the end of the copy at the destination: "closed", "written" or "stopped", or "" if it does not end."""
        if not self.target or not given["dst_done"]:
            return ""
        if self.target.indexed and given["row_failed"]:
            return "stopped" if given["idle"] else ""
        if self.target.writes == Storage.HBM:
            return "closed" if given["closable"] else ""
        return "written" if given["idle"] else ""

    def hands_over(self, given) -> bool:
        vacant = not self.target or self.ends(given) in ("closed", "written")
        return bool(self.source) and vacant and not self.error

    def fails(self, given) -> tuple[int, int, int] | None:
        if given["refused"] and not self.source and not self.target and given["idle"]:
            return given["cause"], self.count, 0
        if self.ends(given) == "stopped":
            return int(Cause.INDEX), self.count, given["row_number"]
        is_undelivered = self.target and given["undelivered"] and given["idle"]
        if given["writer_free"] and (given["quiet"] if given["failed"] else is_undelivered):
            return int(Cause.AXI), self.count, 0
        return None

    def outputs(self, given) -> dict[str, int]:
        copy, begins, error = given["copy"], self.takes(given), self.error or (0, 0, 0)
        return {
            **{"i.ready": begins, "src.valid": begins, "src.side": copy.src, "src.indexed": copy.indexed},
            **{"dst.valid": self.hands_over(given), "dst.side": self.last.dst, "dst.indexed": self.last.indexed},
            **{"formats": self.last.formats, "answers.close": self.ends(given) == "closed", "retired": self.retired},
            **{"error.valid": self.error is not None, "busy": bool(self.source or self.target)},
            **dict(zip(("error.cause", "error.number", "error.detail"), error, strict=True)),
        }

    def step(self, given) -> None:
        takes, ends, hands_over, fails = (rule(given) for rule in (self.takes, self.ends, self.hands_over, self.fails))
        self.retired = bool(given["retired"] or ends == "written")
        self.count += self.retired
        if ends in ("closed", "written"):
            self.target = None
        if hands_over:
            self.target, self.source = self.source, None
        if takes:
            self.source = self.last = given["copy"]
        if fails and not self.error:
            self.target, self.error = None, fails


def random_copy(py_rng, near: float, indexed: float) -> Copy:
    def part(layout, name: str, value: int) -> int:
        field = layout[name]
        return py_rng.getrandbits(layout.size) & ~((1 << field.width) - 1 << field.offset) | value << field.offset

    on_chip = Storage.SBUF, Storage.PSUM
    places = [py_rng.choice(on_chip if py_rng.random() < near else tuple(Storage)) for _ in range(2)]
    sides = (part(SIDE, "storage", place) for place in places)
    return Copy(*sides, py_rng.getrandbits(FORMATS.size), part(ROWS, "on", int(py_rng.random() < indexed)))


@simulated(DmaSequencer)
async def test_outputs_are_those_of_the_model_in_every_cycle(ctx, unit, reset, py_rng):
    seen, model, copy = Counter(), Model(Copy()), Copy()
    for phase in PHASES:
        likely = USUAL | phase
        for _ in range(CYCLES):
            given = {name: int(py_rng.random() < chance) for name, chance in likely.items()}
            given |= {name: py_rng.getrandbits(bits) for name, bits in NUMBERS.items()}
            if py_rng.random() < ANOTHER:
                copy = random_copy(py_rng, likely["near"], likely["indexed"])
            drive(ctx, unit, **{port: given[name] for name, port in PORTS.items()})
            drive(ctx, unit.i.payload, **vars(copy))
            given["copy"] = copy
            expect(ctx, unit, (vars(model), given), **model.outputs(given))
            resets = py_rng.random() < (RESET if model.error else likely["reset"])
            ctx.set(reset, resets)
            fails = model.fails(given) if not model.error else None
            seen[model.ends(given)] += 1
            seen["refused" if fails and fails[0] == given["cause"] else "fails"] += bool(fails)
            seen["begins before another ends"] += bool(model.takes(given) and model.target)
            model.step(given)
            model = Model(model.last) if resets else model
            await ctx.tick()
    assert len(seen) == 7 and min(seen.values()) > 9


@pytest.mark.parametrize("counts", [(0, 1365, 2730, 4096), *slow(((0x1D553,),))])
@simulated(DmaSequencer)
async def test_an_error_has_the_number_of_copies_retired_since_the_reset(ctx, unit, reset, counts):
    for before in counts:
        await pulse(ctx, reset)
        ctx.set(unit.answers.retired, 1)
        for _ in range(before):
            await ctx.tick()
        drive(ctx, unit.answers, retired=0, idle=1)
        drive(ctx, unit.refused, cause=5)
        await pulse(ctx, unit.refused.valid)
        expect(ctx, unit.error, valid=1, cause=5, number=before, detail=0)
