"""Collectives of random groups on the collective engines of an instance and its links, whose frames may be disturbed;
every byte of every core's HBM is compared."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa import Context
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind
from neuroncore_rtl.tb.stimulus.collective_programs import CollectiveIssue, Workload, random_workload
from neuroncore_rtl.tb.tests.links.workloads import engine_job
from neuroncore_rtl.tb.tests.soak.case import (
    ListedCase,
    Verdict,
    array_from,
    array_json,
    hbm_from,
    instance_from,
    instance_json,
    verdict_of,
)  # fmt: skip
from neuroncore_rtl.tb.tests.soak.core_case import hbm_labels
from neuroncore_rtl.tb.tests.soak.machines import drawn_hbm, drawn_instance
from neuroncore_rtl.tb.tests.soak.parts import instruction_of, text_of

__all__ = ["COLLECTIVE_ERRORS", "CollectiveCase", "collective_labels", "instance_labels", "plainer_instances"]

CHIPS = (2, 2, 3, 4, 4, 6, 8)

COLLECTIVE_ERRORS = (0.0, 0.0, 0.001, 0.01)
"""Shares of the frames that are disturbed."""

LIMIT = 4_000_000

Item = Mapping[int, tuple[Collective, int]]
"""A collective: by core that takes part, its instruction and the cycles before that is offered."""


@dataclass(frozen=True, kw_only=True)
class CollectiveCase(ListedCase):
    """Collectives of the engines of an instance.

    Arguments:
        machine: the instance.
        items: the collectives, in an order in which they could run one after the other.
        memories: uint8 [cores, bytes].
        behaviour: of HBM.
        errors: share of the frames that are disturbed. seed: of that.
    """

    machine: Instance
    items: tuple[Item, ...]
    memories: np.ndarray
    behaviour: Hbm
    errors: float
    seed: int

    subject = "collective"

    @classmethod
    def drawn(cls, rng: np.random.Generator, machine: Instance) -> Self:
        """Return a random case on a machine."""
        largest = int(rng.choice([512, 4096, 16384]))
        made = random_workload(rng, machine, int(rng.integers(4, 50)), largest, int(rng.choice([1, 300, 3000])))
        items = tuple(
            {core: (made.lists[core][at], made.delays[core][at]) for core, at in issue.places.items()}
            for issue in made.issues
        )
        disturbed = {"errors": float(rng.choice(COLLECTIVE_ERRORS)), "seed": int(rng.integers(1, 1 << 31))}
        behaviour = drawn_hbm(rng, links=True)
        return cls(machine=machine, items=items, memories=made.memories, behaviour=behaviour, **disturbed)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Instance:
        """Return a random machine."""
        core = PRESETS["small"].with_overrides(hbm_bytes=int(rng.choice([8, 16, 32, 64])))
        return drawn_instance(rng, core, CHIPS)

    def _workload(self) -> Workload:
        lists: dict[int, list[Collective]] = {}
        delays: dict[int, list[int]] = {}
        issues = []
        for item in self.items:
            places = {core: len(lists.setdefault(core, [])) for core in item}
            for core, (one, delay) in item.items():
                one.check(Context(self.machine.core, core=core))
                lists[core].append(one)
                delays.setdefault(core, []).append(delay)
            first = next(iter(item.values()))[0]
            kind = CollectiveKind.SEND if first.kind == CollectiveKind.RECEIVE else first.kind
            issues.append(CollectiveIssue(kind, first.group, first.count, places))
        return Workload(lists, delays, self.memories, issues)

    def run(self) -> Verdict:
        given = {"behaviour": self.behaviour, "errors": self.errors, "limit": LIMIT}
        result = execute(engine_job(self.machine, self._workload(), **given), Rtl(seed=self.seed))
        return verdict_of(result, result.outcome.ending, result.outcome.cycles)

    def smaller(self, number: int) -> Iterator[Self]:
        item = self.items[number]
        count = next(iter(item.values()))[0].count
        for less in sorted({1, count // 2} - {0, count}) if count else ():
            changed = {core: (replace(one, count=less), delay) for core, (one, delay) in item.items()}
            yield replace(self, items=(*self.items[:number], changed, *self.items[number + 1 :]))

    def calmer(self) -> Iterator[Self]:
        for plain in ({"errors": 0.0}, {"behaviour": Hbm()}):
            if any(getattr(self, name) != value for name, value in plain.items()):
                yield replace(self, **plain)
        if any(delay for item in self.items for _, delay in item.values()):
            at_once = ({core: (one, 0) for core, (one, _) in item.items()} for item in self.items)
            yield replace(self, items=tuple(at_once))

    def plainer(self) -> Iterator[Self]:
        used = max((core for item in self.items for core in item), default=0)
        for instance in plainer_instances(self.machine, used):
            yield replace(self, machine=instance, memories=self.memories[: instance.cores])

    def covers(self) -> Counter[str]:
        instructions = (one for item in self.items for one, _ in item.values())
        found = Counter(label for one in instructions for label in collective_labels(one))
        return found + instance_labels(self.machine, self.errors) + hbm_labels(self.behaviour)

    def lines(self) -> list[str]:
        return [f"core {core}: {text_of(one)}" for item in self.items for core, (one, _) in item.items()]

    def as_json(self) -> dict[str, object]:
        items = [[[core, text_of(one), delay] for core, (one, delay) in item.items()] for item in self.items]
        rest = {"memories": array_json(self.memories), "behaviour": asdict(self.behaviour)}
        disturbed = {"errors": self.errors, "seed": self.seed}
        return {"machine": instance_json(self.machine), "items": items, **rest, **disturbed}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        items = tuple({core: (instruction_of(text), delay) for core, text, delay in item} for item in found["items"])
        rest = {"memories": array_from(found["memories"]), "behaviour": hbm_from(found["behaviour"])}
        disturbed = {"errors": found["errors"], "seed": found["seed"]}
        return cls(machine=instance_from(found["machine"]), items=items, **rest, **disturbed)


def collective_labels(one: Collective) -> Iterator[str]:
    """Yield what a collective has, `dimension:value`."""
    yield "engine:collective"
    yield f"opcode:{one.kind.name.lower()}"
    yield f"collective:{one.kind.name.lower()}"
    if one.kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER):
        yield f"reduction:{one.op.name.lower()} {one.dtype.name.lower()}"
        if one.narrow:
            yield "rounding:narrow"
        if one.stochastic:
            yield "rounding:stochastic"


def instance_labels(instance: Instance, errors: float) -> Counter[str]:
    """Return the parameters of an instance, and whether its links are disturbed."""
    numbers = {name: getattr(instance, name) for name in ("chips", "link_bytes", "link_latency", "topology")}
    found = {f"{name}:{value}": 1 for name, value in numbers.items()}
    return Counter({**found, f"cores:{instance.cores}": 1, f"errors on links:{errors}": 1})


def plainer_instances(instance: Instance, used: int) -> Iterator[Instance]:
    """Yield instances that are more as usual; used: the highest core that takes part."""
    ring = replace(instance, topology=Topology.RING, width=2)
    chips = max(2, used // 2 + 1)
    plain = replace(ring, chips=chips, link_bytes=16, link_latency=2)
    for one in (plain, replace(ring, chips=chips), ring):
        if one != instance:
            yield one
