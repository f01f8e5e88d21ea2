"""An instance: chips of two cores, tied by links into a ring or a torus; and the presets that have a name."""

import enum
from dataclasses import dataclass, field, replace

from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.link import CORES_PER_CHIP, MAX_CORES

__all__ = ["INSTANCES", "Instance", "Topology", "link_bytes_of"]


class Topology(enum.StrEnum):
    """How the chips are tied. TORUS has rows of `width` chips; its rows and its columns are rings."""

    RING = "ring"
    TORUS = "torus"


def link_bytes_of(config: Config) -> int:
    """Return the bytes of a flit that go with a core: half of what its HBM moves a cycle, since both directions of a
    ring end there, from 8 to 64; 64 at `full`, near the published 96 GiB/s of a link at 1.4 GHz."""
    return max(8, min(64, config.hbm_bytes * config.hbm_ports // 2))


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Parameters of an instance.

    Arguments:
        chips: 2 to 64. Chip i's links go up to chip i + 1 and down to chip i - 1, round the ring.
        topology: RING, or TORUS of rows of `width` chips (chip = row * width + column).
        width: chips in a row of the torus; at least 2, and so are the rows. Means nothing in a ring.
        link_bytes: of a flit's data: 8, 16, 32 or 64.
        link_latency: cycles from one end of a link's wire to the other; 1 to 64.
        core: parameters of every core; its `cores` become those of the instance.

    Raises:
        TypeError: if a number is not an integer.
        ValueError: if a parameter is out of its range.
    """

    chips: int = 16
    topology: Topology = Topology.RING
    width: int = 4
    link_bytes: int = 16
    link_latency: int = 2
    core: Config = field(default_factory=lambda: PRESETS["small"])

    def __post_init__(self):
        most = MAX_CORES // CORES_PER_CHIP
        ranges = {"chips": (2, most), "width": (1, most), "link_bytes": (8, 64), "link_latency": (1, 64)}
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")
        if self.link_bytes & (self.link_bytes - 1):
            raise ValueError(f"link_bytes must be a power of two, not {self.link_bytes!r}")
        if self.topology == Topology.TORUS and (
            self.width < 2 or self.chips < 2 * self.width or self.chips % self.width
        ):
            raise ValueError(
                f"chips of a torus must be at least 2 rows of width {self.width}, 2 or more, not {self.chips!r}"
            )

        object.__setattr__(self, "core", replace(self.core, cores=self.cores))

    @property
    def cores(self) -> int:
        """Cores of the instance."""
        return self.chips * CORES_PER_CHIP

    @property
    def directions(self) -> int:
        """Links that leave a chip."""
        return 4 if self.topology == Topology.TORUS else 2

    def neighbour(self, chip: int, direction: int) -> int:
        """Return the chip at the other end of a chip's link.

        Directions 0 (to the next chip) and 1 go along a ring, or a row of a torus; 2 (to the next row) and 3 across.
        """
        columns = self.chips if self.topology == Topology.RING else self.width
        row, column = divmod(chip, columns)
        step = -1 if direction % 2 else 1
        if direction < 2:
            return row * columns + (column + step) % columns
        return (chip + step * columns) % self.chips

    def with_overrides(self, **overrides) -> "Instance":
        """Return a copy with the parameters that are not None replaced."""
        return replace(self, **{name: value for name, value in overrides.items() if value is not None})


INSTANCES: dict[str, Instance] = {
    "trn1": Instance(chips=16, link_bytes=64, core=PRESETS["full"]),
    "inf2": Instance(chips=12, link_bytes=64, core=PRESETS["full"]),
}
"""Named instances: the chips of a trn1.32xlarge, whose 4 x 4 torus is TOPOLOGY=torus, and of an inf2.48xlarge."""
