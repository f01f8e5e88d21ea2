"""Soak case of an instance: one image per core; copies and collectives share HBM addresses."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import Instruction
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind
from neuroncore_rtl.tb.stimulus.collective_programs import random_workload
from neuroncore_rtl.tb.stimulus.core_programs import CoreWriter
from neuroncore_rtl.tb.tests.soak import machines
from neuroncore_rtl.tb.tests.soak.case import Case, Verdict, smaller_sizes, verdict_of
from neuroncore_rtl.tb.tests.soak.collective_case import collective_labels, draw_errors
from neuroncore_rtl.tb.tests.soak.core_case import draw_garble, drawn_choices
from neuroncore_rtl.tb.tests.soak.parts import Part, part_of

__all__ = ["InstanceCase"]

SIDES = (2, 2, 3, 4)  # small, because an instance has at least four cores
CHIPS = (2, 2, 3)
LARGEST = 1024  # bytes of a collective's source or destination
LIMIT = 2_000_000


@dataclass(frozen=True, kw_only=True)
class InstanceCase(Case):
    """Images on all cores, which start after `delays` cycles; instructions of one collective count as one item."""

    machine: Instance
    parts: tuple[Part, ...]
    behaviour: Hbm
    delays: tuple[int, ...]
    errors: float
    seed: int

    subject = "instance"

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: Instance) -> Self:
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
            parts.append(part_of(writer.finish(), draw_garble(rng)))
        errors = draw_errors(rng)
        delays = tuple(int(10 ** rng.uniform(0, 3)) for _ in parts)
        behaviour = machines.drawn_hbm(rng, links=True)
        return cls(machine=machine, parts=tuple(parts), behaviour=behaviour, delays=delays, **errors)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Instance:
        core = machines.drawn_config(rng, SIDES).with_overrides(sbuf_bytes=16 * 1024, dma_engines=2, hbm_ports=1)
        core = core.with_overrides(semaphores=max(128, core.semaphores), psum_words=max(64, core.psum_words))
        return machines.drawn_instance(rng, core, CHIPS)

    @cached_property
    def _items(self) -> list[list[tuple[int, int]]]:
        """Return for each removable item its instructions: the core, and the index in the core's part."""
        found, pending = [], {core: [] for core in range(len(self.parts))}
        for core, part in enumerate(self.parts):
            for at, (one, _) in enumerate(part.steps):
                if _is_collective(one):
                    pending[core].append(at)
                else:
                    found.append([(core, at)])
        # Each core executes its collectives in the order of their creation.
        while any(pending.values()):
            for core in (core for core, own in pending.items() if own):
                peers = _peers(self.parts[core].steps[pending[core][0]][0])
                if all(pending[p] and _peers(self.parts[p].steps[pending[p][0]][0]) == peers for p in peers):
                    found.append([(peer, pending[peer].pop(0)) for peer in peers])
                    break
            else:
                raise ValueError("every collective must be on all cores of its group, in one order")
        return found

    @property
    def size(self) -> int:
        return len(self._items)

    def judge(self) -> Verdict:
        images = [part.image(self.machine.core, core) for core, part in enumerate(self.parts)]
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
            yield from (self.with_item("parts", core, less) for less in self.parts[core].smaller(at))
            return
        for count in smaller_sizes(one.count):
            parts = list(self.parts)
            for core, at in places:
                one, queue = parts[core].steps[at]
                parts[core] = parts[core].with_item("steps", at, (replace(one, count=count), queue))
            yield replace(self, parts=tuple(parts))

    def calmer(self) -> Iterator[Self]:
        yield from self.variants(errors=0.0, behaviour=Hbm(), delays=(0,) * len(self.parts))
        for plain in ({"garble": None}, {"order": ORDERS[0]}):
            yield from self.variants(parts=tuple(replace(part, **plain) for part in self.parts))

    def plainer(self) -> Iterator[Self]:
        used = max((core for core, part in enumerate(self.parts) if part.steps), default=0)
        for instance in machines.plainer_instances(self.machine, used):
            cut = {name: getattr(self, name)[: instance.cores] for name in ("parts", "delays")}
            yield replace(self, machine=instance, **cut)

    def covers(self) -> Counter[str]:
        found = sum((part.covers() for part in self.parts), Counter())
        collectives = (one for part in self.parts for one, _ in part.steps if _is_collective(one))
        found += Counter(label for one in collectives for label in collective_labels(one) if label.startswith("c"))
        core = machines.machine_labels(self.machine.core)
        del core[f"cores:{self.machine.core.cores}"]
        found += machines.instance_labels(self.machine, self.errors) + machines.hbm_labels(self.behaviour) + core
        return found + Counter({"engine:controller": len(self.parts)})

    def lines(self) -> list[str]:
        return [f"core {core}: {line}" for core, part in enumerate(self.parts) for line in part.lines()]


def _is_collective(instruction: Instruction) -> bool:
    return hasattr(instruction, "group")


def _peers(one: Collective) -> tuple[int, ...]:
    if one.kind in (CollectiveKind.SEND, CollectiveKind.RECEIVE):
        return tuple(sorted((one.core, one.group.cores[one.root])))
    return tuple(sorted(one.group.cores))
