"""NeuronCores as devices of JAX, with their HBM; the environment chooses machine, target and number."""

import os
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from neuroncore_rtl.frontends.pjrt.handles import Failure
from neuroncore_rtl.run.settings import HBM_ROOM, Option, choice, integer, machine_of
from neuroncore_rtl.spec.config import PRESETS, Config

__all__ = ["CLIENT", "PLATFORM", "JaxCore"]

PLATFORM = "neuron"

_GRANULE = 64
"""Bytes to which an array in HBM is rounded up."""

_VARIABLES = (
    choice("NEURON_TARGET", "golden", "where programs run", ("golden", "model", "rtl")),
    choice("NEURON_PRESET", "small", "the machine", PRESETS),
    integer("NEURON_RTL_EVERY", 0, "run each call of this number on the RTL", 0),
    integer("NEURON_RT_NUM_CORES", 1, "number of cores", 1, 32),
)


def _value(option: Option) -> Any:
    text = os.environ.get(option.name)
    return option.default if text is None else option.parse(text)


@dataclass
class Hbm:
    """Memory of a core, as far as arrays occupy it; the attributes are JAX's `memory_stats`."""

    bytes_in_use: int = 0
    peak_bytes_in_use: int = 0
    num_allocs: int = 0
    largest_alloc_size: int = 0
    bytes_limit: int = HBM_ROOM
    _lock: Any = field(default_factory=Lock, repr=False)

    def check(self, size: int, what: str, used: int = 0) -> None:
        """Refuse an array that has no room beside `used` bytes."""
        if used + size > self.bytes_limit:
            rule = f"arrays must have at most {self.bytes_limit:,} bytes of HBM together to be simulated"
            raise Failure(f"{rule}, not {used + size:,} with {what}", Failure.RESOURCE_EXHAUSTED)

    def take(self, size: int, what: str) -> int:
        """Take room for an array; return the bytes that it occupies."""
        size = -(-size // _GRANULE) * _GRANULE
        with self._lock:
            self.check(size, what, self.bytes_in_use)
            self.bytes_in_use += size
            self.num_allocs += 1
            self.largest_alloc_size = max(self.largest_alloc_size, size)
        self.note(0)
        return size

    def give(self, size: int) -> None:
        """Return the room of an array."""
        with self._lock:
            self.bytes_in_use -= size

    def note(self, size: int) -> None:
        """Count the memory of a program that runs as used at the same time as all arrays."""
        with self._lock:
            self.peak_bytes_in_use = max(self.peak_bytes_in_use, self.bytes_in_use + size)


class JaxCore:
    """A NeuronCore: device, description and memory in one."""

    process_index = kind_id = 0
    is_addressable = True

    def __init__(self, id: int):
        self.id, self.hbm = id, Hbm()
        self.memory, self.description = Memory(self), self
        self.memories, self.kind, self.text = [self.memory], "NeuronCore-v2", f"NeuronCore(id={id})"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["hbm"], name)


class Memory:
    """HBM of a core, as JAX names it."""

    kind, kind_id = "device", 0

    def __init__(self, core: JaxCore):
        self.id, self.core, self.devices, self.text = core.id, core, [core], f"HBM(id={core.id})"


class Client:
    """The platform: its cores and settings, and what ran on it."""

    platform_name, platform_version, process_index = PLATFORM, "neuroncore-rtl", 0

    settings: dict[str, Any]
    config: Config
    devices: list[JaxCore]

    def __init__(self):
        self.programs = self.calls = self.on_rtl = self.cycles = 0
        self.topology = self

    def start(self) -> None:
        """Read the environment; UsageError if a variable is not valid."""
        self.settings = {one.name: _value(one) for one in _VARIABLES}
        self.config, _ = machine_of(self.settings["NEURON_PRESET"], {})
        self.devices = [JaxCore(number) for number in range(self.settings["NEURON_RT_NUM_CORES"])]

    @property
    def memories(self) -> list[Memory]:
        return [core.memory for core in self.devices]

    @property
    def descriptions(self) -> list[JaxCore]:
        return self.devices

    def target(self) -> str:
        """Count a call; return where it runs."""
        self.calls += 1
        every = self.settings["NEURON_RTL_EVERY"]
        target = "rtl" if every and self.calls % every == 0 else self.settings["NEURON_TARGET"]
        self.on_rtl += target == "rtl"
        return target

    @property
    def summary(self) -> str:
        """Sentence for the end of the process; empty if everything ran on golden."""
        counts = f"{self.programs:,} programs, {self.calls:,} calls, {self.on_rtl:,} on the RTL, equal to golden"
        return f"{PLATFORM}: {counts}; {self.cycles:,} cycles" if self.cycles else ""


CLIENT = Client()
