"""Soak case of the collective engines: random collectives of random groups over links that may disturb frames."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import Context
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind
from neuroncore_rtl.tb.stimulus.collective_programs import CollectiveIssue, Workload, random_workload
from neuroncore_rtl.tb.tests.links.workloads import engine_job
from neuroncore_rtl.tb.tests.soak import machines
from neuroncore_rtl.tb.tests.soak.case import ListedCase, Verdict, smaller_sizes, text_of, verdict_of

__all__ = ["CollectiveCase", "collective_labels", "draw_errors"]

CHIPS = (2, 2, 3, 4, 4, 6, 8)
ERRORS = (0.0, 0.0, 0.001, 0.01)
LIMIT = 4_000_000

Item = tuple[tuple[int, Collective, int], ...]
"""A collective: for each participating core its index, its instruction, and the delay before it in cycles."""


@dataclass(frozen=True, kw_only=True)
class CollectiveCase(ListedCase):
    """Collectives on an instance's engines, in sequential order, on memories uint8 [cores, bytes]."""

    machine: Instance
    items: tuple[Item, ...]
    memories: np.ndarray
    behaviour: Hbm
    errors: float
    seed: int

    subject = "collective"

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: Instance) -> Self:
        largest = int(rng.choice([512, 4096, 16384]))
        made = random_workload(rng, machine, int(rng.integers(4, 50)), largest, int(rng.choice([1, 300, 3000])))
        items = tuple(
            tuple((core, made.lists[core][at], made.delays[core][at]) for core, at in issue.places.items())
            for issue in made.issues
        )
        errors = draw_errors(rng)
        behaviour = machines.drawn_hbm(rng, links=True)
        return cls(machine=machine, items=items, memories=made.memories, behaviour=behaviour, **errors)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Instance:
        core = PRESETS["small"].with_overrides(hbm_bytes=int(rng.choice([8, 16, 32, 64])))
        return machines.drawn_instance(rng, core, CHIPS)

    def _workload(self) -> Workload:
        lists: dict[int, list[Collective]] = {}
        delays: dict[int, list[int]] = {}
        issues = []
        for item in self.items:
            places = {core: len(lists.setdefault(core, [])) for core, _, _ in item}
            for core, one, delay in item:
                one.check(Context(self.machine.core, core=core))
                lists[core].append(one)
                delays.setdefault(core, []).append(delay)
            first = item[0][1]
            kind = CollectiveKind.SEND if first.kind == CollectiveKind.RECEIVE else first.kind
            issues.append(CollectiveIssue(kind, first.group, first.count, places))
        return Workload(lists, delays, self.memories, issues)

    def judge(self) -> Verdict:
        given = {"behaviour": self.behaviour, "errors": self.errors, "limit": LIMIT}
        result = execute(engine_job(self.machine, self._workload(), **given), Rtl(seed=self.seed))
        return verdict_of(result, result.outcome.ending, result.outcome.cycles)

    def smaller(self, number: int) -> Iterator[Self]:
        item = self.items[number]
        for less in smaller_sizes(item[0][1].count):
            changed = tuple((core, replace(one, count=less), delay) for core, one, delay in item)
            yield self.with_item("items", number, changed)

    def calmer(self) -> Iterator[Self]:
        undelayed = tuple(tuple((core, one, 0) for core, one, _ in item) for item in self.items)
        return self.variants(errors=0.0, behaviour=Hbm(), items=undelayed)

    def plainer(self) -> Iterator[Self]:
        used = max((core for item in self.items for core, _, _ in item), default=0)
        for instance in machines.plainer_instances(self.machine, used):
            yield replace(self, machine=instance, memories=self.memories[: instance.cores])

    def covers(self) -> Counter[str]:
        instructions = (one for item in self.items for _, one, _ in item)
        found = Counter(label for one in instructions for label in collective_labels(one))
        return found + machines.instance_labels(self.machine, self.errors) + machines.hbm_labels(self.behaviour)

    def lines(self) -> list[str]:
        return [f"core {core}: {text_of(one)}" for item in self.items for core, one, _ in item]


def draw_errors(rng: np.random.Generator) -> dict[str, float | int]:
    """Return a random share of disturbed frames, and a seed."""
    return {"errors": float(rng.choice(ERRORS)), "seed": int(rng.integers(1, 1 << 31))}


def collective_labels(one: Collective) -> Iterator[str]:
    """Yield the labels of a collective's features."""
    yield "engine:collective"
    yield f"opcode:{one.kind.name.lower()}"
    yield f"collective:{one.kind.name.lower()}"
    if one.kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER):
        yield f"reduction:{one.op.name.lower()} {one.dtype.name.lower()}"
        if one.narrow:
            yield "rounding:narrow"
        if one.stochastic:
            yield "rounding:stochastic"
