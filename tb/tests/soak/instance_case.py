"""Programs of all engines and of collectives, one on every core of an instance: a core's copies and collectives share
places in its HBM, so that they wait for each other; every byte of every core's HBM is compared."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind
from neuroncore_rtl.tb.stimulus.collective_programs import random_workload
from neuroncore_rtl.tb.stimulus.core_programs import CoreWriter
from neuroncore_rtl.tb.tests.soak.case import Case, Verdict, hbm_from, instance_from, instance_json, verdict_of
from neuroncore_rtl.tb.tests.soak.collective_case import (
    COLLECTIVE_ERRORS,
    collective_labels,
    instance_labels,
    plainer_instances,
)  # fmt: skip
from neuroncore_rtl.tb.tests.soak.core_case import drawn_choices, hbm_labels, machine_labels
from neuroncore_rtl.tb.tests.soak.machines import drawn_config, drawn_hbm, drawn_instance
from neuroncore_rtl.tb.tests.soak.parts import Part, part_of

__all__ = ["InstanceCase"]

SIDES = (2, 2, 3, 4)
"""Rows and columns: there are four cores or more."""

CHIPS = (2, 2, 3)

LARGEST = 1024
"""Bytes of a collective's source or destination."""

LIMIT = 2_000_000


def _is_collective(instruction) -> bool:
    """Return whether an instruction is one of several, on all cores of a group."""
    return hasattr(instruction, "group")


@dataclass(frozen=True, kw_only=True)
class InstanceCase(Case):
    """Images on all cores of an instance.

    Arguments:
        machine: the instance.
        parts: the image of each core. Instructions of one collective are one item, all others one each.
        behaviour: of HBM.
        delays: of each core, the cycles that pass before it is started.
        errors: share of the frames that are disturbed. seed: of that.
    """

    machine: Instance
    parts: tuple[Part, ...]
    behaviour: Hbm
    delays: tuple[int, ...]
    errors: float
    seed: int

    subject = "instance"

    @classmethod
    def drawn(cls, rng: np.random.Generator, machine: Instance) -> Self:
        """Return a random case on a machine."""
        config, order = machine.core, str(rng.choice(ORDERS))
        most = min(24, config.semaphores // 8)
        made = random_workload(rng, machine, int(rng.integers(1, max(2, most // 2))), LARGEST)
        room = made.memories.shape[1]
        choices = replace(drawn_choices(rng, config), hbm_bytes=room, nops=0.0)
        writers = [CoreWriter(rng, config, choices, 0, order, core) for core in range(machine.cores)]
        taken = [0] * machine.cores
        for issue in made.issues:
            for core in issue.places:
                for _ in range(int(rng.integers(0, 4))):
                    writers[core].add()
                one = made.lists[core][taken[core]]
                taken[core] += 1
                at = writers[core].hbm.address
                writers[core].program.append(replace(one, src=one.src + at, dst=one.dst + at))
        parts = []
        for writer in writers:
            for _ in range(int(rng.integers(0, 4))):
                writer.add()
            parts.append(part_of(writer.finish(), int(rng.integers(1 << 32)) if rng.integers(2) else None))
        disturbed = {"errors": float(rng.choice(COLLECTIVE_ERRORS)), "seed": int(rng.integers(1, 1 << 31))}
        delays = tuple(int(10 ** rng.uniform(0, 3)) for _ in parts)
        behaviour = drawn_hbm(rng, links=True)
        return cls(machine=machine, parts=tuple(parts), behaviour=behaviour, delays=delays, **disturbed)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Instance:
        """Return a random machine."""
        core = drawn_config(rng, SIDES).with_overrides(sbuf_bytes=16 * 1024, dma_engines=2, hbm_ports=1)
        core = core.with_overrides(semaphores=max(128, core.semaphores), psum_words=max(64, core.psum_words))
        return drawn_instance(rng, core, CHIPS)

    @cached_property
    def _items(self) -> list[list[tuple[int, int]]]:
        """Of each item the cores and the places there of its instructions."""
        found = [[(core, at)] for core, part in enumerate(self.parts) for at in _own(part)]
        pending = {core: _collectives(part) for core, part in enumerate(self.parts)}
        # Each core executes its collectives in the order of their making.
        while any(pending.values()):
            for core in (core for core, places in pending.items() if places):
                one = self.parts[core].steps[pending[core][0]][0]
                peers = _peers(one)
                if all(pending[p] and _peers(self.parts[p].steps[pending[p][0]][0]) == peers for p in peers):
                    found.append([(peer, pending[peer].pop(0)) for peer in peers])
                    break
            else:
                raise ValueError("every collective must be on all cores of its group, in one order")
        return found

    @property
    def size(self) -> int:
        return len(self._items)

    def run(self) -> Verdict:
        config = self.machine.core
        images = [part.image(config, core) for core, part in enumerate(self.parts)]
        shared = {"delays": list(self.delays), "behaviour": self.behaviour, "errors": self.errors}
        result = execute(ImageJob(machine=self.machine, images=images, **shared, limit=LIMIT), Rtl(seed=self.seed))
        return verdict_of(result, result.outcome.ending, result.outcome.cycles)

    def without(self, numbers: Collection[int]) -> Self:
        gone = [place for number in numbers for place in self._items[number]]
        parts = (part.without({at for own, at in gone if own == core}) for core, part in enumerate(self.parts))
        return replace(self, parts=tuple(parts))

    def smaller(self, number: int) -> Iterator[Self]:
        places = self._items[number]
        core, at = places[0]
        one = self.parts[core].steps[at][0]
        if not _is_collective(one):
            for less in self.parts[core].smaller(at):
                yield replace(self, parts=(*self.parts[:core], less, *self.parts[core + 1 :]))
            return
        for count in sorted({1, one.count // 2} - {0, one.count}) if one.count else ():
            parts = list(self.parts)
            for core, at in places:
                steps = list(parts[core].steps)
                steps[at] = replace(steps[at][0], count=count), steps[at][1]
                parts[core] = replace(parts[core], steps=tuple(steps))
            yield replace(self, parts=tuple(parts))

    def calmer(self) -> Iterator[Self]:
        plain = {"errors": 0.0, "behaviour": Hbm(), "delays": (0,) * len(self.parts)}
        for name, value in plain.items():
            if getattr(self, name) != value:
                yield replace(self, **{name: value})
        for plain in ({"garble": None}, {"order": ORDERS[0]}):
            if any(getattr(part, name) != value for part in self.parts for name, value in plain.items()):
                yield replace(self, parts=tuple(replace(part, **plain) for part in self.parts))

    def plainer(self) -> Iterator[Self]:
        used = max((core for core, part in enumerate(self.parts) if part.steps), default=0)
        for instance in plainer_instances(self.machine, used):
            cut = {name: getattr(self, name)[: instance.cores] for name in ("parts", "delays")}
            yield replace(self, machine=instance, **cut)

    def covers(self) -> Counter[str]:
        found = sum((part.covers() for part in self.parts), Counter())
        collectives = (one for part in self.parts for one, _ in part.steps if _is_collective(one))
        found += Counter(label for one in collectives for label in collective_labels(one) if label.startswith("c"))
        core = {label: n for label, n in machine_labels(self.machine.core).items() if not label.startswith("cores:")}
        found += instance_labels(self.machine, self.errors) + hbm_labels(self.behaviour) + Counter(core)
        return found + Counter({"engine:controller": len(self.parts)})

    def lines(self) -> list[str]:
        return [f"core {core}: {line}" for core, part in enumerate(self.parts) for line in part.lines()]

    def as_json(self) -> dict[str, object]:
        parts, own = [part.as_json() for part in self.parts], {"delays": list(self.delays)}
        disturbed = {"behaviour": asdict(self.behaviour), "errors": self.errors, "seed": self.seed}
        return {"machine": instance_json(self.machine), "parts": parts, **own, **disturbed}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        parts, delays = tuple(map(Part.from_json, found["parts"])), tuple(found["delays"])
        disturbed = {"behaviour": hbm_from(found["behaviour"]), "errors": found["errors"], "seed": found["seed"]}
        return cls(machine=instance_from(found["machine"]), parts=parts, delays=delays, **disturbed)


def _own(part: Part) -> list[int]:
    """Return the places of the instructions that are no collectives."""
    return [at for at, (one, _) in enumerate(part.steps) if not _is_collective(one)]


def _collectives(part: Part) -> list[int]:
    """Return the places of those that are."""
    return [at for at, (one, _) in enumerate(part.steps) if _is_collective(one)]


def _peers(one: Collective) -> tuple[int, ...]:
    """Return the cores that take part in a collective."""
    if one.kind in (CollectiveKind.SEND, CollectiveKind.RECEIVE):
        return tuple(sorted((one.core, one.group.cores[one.root])))
    return tuple(sorted(one.group.cores))
