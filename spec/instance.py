"""Instance: chips of two cores, linked in a ring or a torus; and named presets."""

import enum
from dataclasses import dataclass, field, replace

from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.link import CORES_PER_CHIP, MAX_CORES

__all__ = ["INSTANCES", "Instance", "Topology", "link_bytes_of"]


class Topology(enum.StrEnum):
    """Topology of the links between chips; each row and each column of a torus is a ring."""

    RING = "ring"
    TORUS = "torus"


def link_bytes_of(config: Config) -> int:
    """Return the flit size that suits a core: half of its HBM bytes per cycle, between 8 and 64.

    Half, because both directions of a ring end at the core.
    """
    return max(8, min(64, config.hbm_bytes * config.hbm_ports // 2))


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Parameters of an instance.

    Arguments:
        chips: number of chips, 2 to 64; a ring leads up from chip i to chip i + 1.
        topology: RING, or TORUS of rows of `width` chips (chip = row * width + column).
        width: chips in a row of the torus; at least 2, with at least 2 rows.
        link_bytes: data bytes of a flit: 8, 16, 32 or 64.
        link_latency: cycles from one end of a link's wire to the other; 1 to 64.
        core: parameters of every core; its `cores` is replaced.
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
        if self.topology == Topology.TORUS and self.width < 2:
            raise ValueError(f"width of a torus must be at least 2, not {self.width!r}")
        if self.topology == Topology.TORUS and (self.chips < 2 * self.width or self.chips % self.width):
            rule = f"a multiple of width={self.width}, at least {2 * self.width}"
            raise ValueError(f"chips of a torus must be {rule}, not {self.chips!r}")

        object.__setattr__(self, "core", replace(self.core, cores=self.cores))

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self.chips * CORES_PER_CHIP

    @property
    def directions(self) -> int:
        """Number of links from each chip to other chips."""
        return 4 if self.topology == Topology.TORUS else 2

    def neighbour(self, chip: int, direction: int) -> int:
        """Return the chip at the other end of a chip's link.

        Directions 0 (up) and 1 are along a ring, or a row of a torus, directions 2 (up) and 3 along a column.
        """
        columns = self.chips if self.topology == Topology.RING else self.width
        row, column = divmod(chip, columns)
        step = -1 if direction % 2 else 1
        if direction < 2:
            return row * columns + (column + step) % columns
        return (chip + step * columns) % self.chips

    def with_overrides(self, **overrides) -> "Instance":
        """Return a copy with the given parameters replaced, except those that are None."""
        return replace(self, **{name: value for name, value in overrides.items() if value is not None})


INSTANCES: dict[str, Instance] = {
    "trn1": Instance(chips=16, link_bytes=64, core=PRESETS["full"]),
    "inf2": Instance(chips=12, link_bytes=64, core=PRESETS["full"]),
    "trainium1": Instance(chips=16, link_bytes=32, core=PRESETS["trainium1"]),
    "inferentia2": Instance(chips=12, link_bytes=32, core=PRESETS["inferentia2"]),
}
"""Named instances: the chips of a trn1.32xlarge (its 4 x 4 torus is TOPOLOGY=torus) and of an inf2.48xlarge.

`trainium1` and `inferentia2` are the same with the clocks of the silicon. Their links carry 32 bytes per cycle of
2.8 GHz, 83 GiB/s; published are 384 GiB/s for the four links of a chip in the torus, 192 for two in a ring, 96 each.
"""
