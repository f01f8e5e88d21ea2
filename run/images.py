"""Images as tasks: one on a core that is alone, or one on every core of an instance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuroncore_rtl.golden.core import Core, CoreOutcome, run_instance
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.check.image_failures import explained, image_failures
from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.harness.cores import CoreDevice, CoreWork, room_of
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.timeline import TrackGroup
from neuroncore_rtl.run.view.tracks import core_tracks, link_tracks
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance

__all__ = ["ImageTask"]

PAGE = 4096
"""The HBM of each core of an instance is so many bytes, or a multiple."""

_WORK = ("memories", "boots", "delays", "behaviour", "errors", "limit", "profiled")
"""What the device is told as it is here."""

CHIP_LEVELS = 2
"""Levels of the hierarchy between the harness and a core, more than where there is one core alone."""


@dataclass(frozen=True, kw_only=True)
class ImageTask:
    """An image on every core.

    Arguments:
        machine: the core's parameters, or those of the instance.
        images: of each core.
        data: of an instance uint8 [cores, bytes], what else is in HBM from address 0 on.
        delays: of each core, the cycles that pass before it is started; none if not given.
        behaviour: of HBM.
        errors: share of the frames that are disturbed.
        core: the core of an instance whose insides a waveform shows; None: none.
        limit: cycles after which the run is given up.
        profiled: whether the outcome of each core has its activity.

    Raises:
        UsageError: if there is no such core.
    """

    machine: Config | Instance
    images: Sequence[Image]
    data: np.ndarray | None = None
    delays: Sequence[int] | None = None
    behaviour: Hbm = Hbm()
    errors: float = 0.0
    core: int | None = None
    limit: int = 50_000_000
    profiled: bool = False

    def __post_init__(self):
        if self.core is not None and self.core >= len(self.images):
            raise UsageError(f"CORE must be below the {len(self.images)} cores of the instance, not {self.core}")

    @property
    def instance(self) -> Instance | None:
        """The instance; None if the core is alone."""
        return self.machine if isinstance(self.machine, Instance) else None

    @property
    def config(self) -> Config:
        """Parameters of every core."""
        return self.machine.core if self.instance else self.machine

    @property
    def levels(self) -> int:
        """Levels that a waveform has between the harness and what DEPTH counts from."""
        return 0 if self.core is None else CHIP_LEVELS

    @property
    def doing(self) -> str:
        """What the device does."""
        records = sum(len(part) for image in self.images for part in image.records)
        return f"running {records:,} records" + (f" on {len(self.images)} cores" if self.instance else "")

    @property
    def title(self) -> str:
        """What the picture of the links is of."""
        return f"images on {len(self.images)} cores"

    @cached_property
    def memories(self) -> np.ndarray:
        """HBM of each core before the start, uint8 [cores, bytes]."""
        if not self.instance:
            return self.images[0].memory()[None]
        data = np.zeros((len(self.images), 0), np.uint8) if self.data is None else self.data
        size = max([data.shape[1], *(image.base + len(image.data) for image in self.images)])
        memories = np.pad(data, ((0, 0), (0, -(-size // PAGE) * PAGE - data.shape[1])))
        for image, memory in zip(self.images, memories, strict=True):
            image.store(memory)
        return memories

    @cached_property
    def boots(self) -> list[int]:
        """Where each core's image is."""
        return [image.base for image in self.images]

    def device(self, *, waves: bool = False) -> CoreDevice:
        """Return the cores, with as much room as is needed; of an instance nobody watches the AXI ports."""
        inside = {"check_axi": False, "inside": waves and self.core is not None} if self.instance else {}
        return CoreDevice(machine=self.machine, room=room_of(self.memories), **inside)

    def work(self, seed: int, *, sampled: bool = False) -> CoreWork:
        """Return what the cores boot, and what befalls them."""
        own = {name: getattr(self, name) for name in _WORK}
        return CoreWork(**own, seed=seed, sampled=sampled and self.instance is not None)

    def golden(self) -> tuple[Sequence[np.ndarray], list[CoreOutcome]]:
        """Return the HBM of each core after golden has executed its image, and what became of that."""
        memories = self.memories.copy()
        if self.instance is None:
            return memories, [Core(self.machine, memories[0]).run(self.boots[0])]
        return memories, run_instance(self.machine.core, memories, bases=self.boots)

    def failures(self, outcome: Outcome, expected: Sequence[CoreOutcome]) -> Iterator[str]:
        """Yield what is wrong with each core's run, and the links that are dead."""
        if self.instance is not None:
            yield from (f"{link_name(self.instance, wire)} is dead" for wire in outcome.links.dead)
        for core, golden in enumerate(expected):
            found = image_failures(outcome.parts[core], golden, self.memories[core], self.config)
            yield from (f"core {core}: {failure}" if self.instance else failure for failure in found)
            if golden.error is not None:
                error = explained(golden.error, self.memories[core], self.config)
                yield f"golden must report no error, but does: {error}"

    def cycles(self, outcome: Outcome) -> int:
        """Return the cycles until the last program ended."""
        return outcome.cycles

    def tracks(self, outcome: Outcome) -> Iterator[TrackGroup]:
        """Yield the tracks of all cores and of the links."""
        for core, image in enumerate(self.images):
            name = f"core {core}" if self.instance else "core"
            yield core_tracks(
                name, outcome.parts[core], self.config, lambda address, image=image: image.locate(address)[1]
            )
        if self.instance:
            yield from link_tracks(self.instance, outcome.links.samples)
