"""Variables of the TESTs of an instance: chips, links, disturbances of the wires, and participating cores."""

from neuroncore_rtl.run.settings import LATENCY, RECORDED, SEED, STALL, Option, Settings, UsageError, choice, integer
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import INSTANCES, Instance, Topology, link_bytes_of
from neuroncore_rtl.spec.isa.collective import MAX_RANKS, Group
from neuroncore_rtl.spec.link import CORES_PER_CHIP, MAX_CORES

__all__ = [
    "CORE", "CORES", "ERRORS", "INSTANCE_OPTIONS", "TARGET_OPTIONS", "collective_options", "groups_of", "instance_of",
    "share_of",
]  # fmt: skip

_CHIPS = MAX_CORES // CORES_PER_CHIP
CHIPS = 4
LINK_BYTES = 16  # default bytes of a flit between engines without cores

ERRORS = choice(
    "ERRORS", "0", "share of disturbed frames on every wire, from 0 to 0.01: a bit flipped, a frame lost or repeated"
)

_INSTANCE = "a named instance, for its chips and, without whole cores, its links"
_LINK_BYTES = "bytes of a flit: 8, 16, 32 or 64; default: 16, INSTANCE's, or those of the whole cores' preset"
INSTANCE_OPTIONS = (
    choice("INSTANCE", None, _INSTANCE, INSTANCES),
    integer("CHIPS", None, f"chips of two cores; default: {CHIPS}, or those of INSTANCE", 2, _CHIPS),
    choice("TOPOLOGY", Topology.RING.value, "topology of the links", (topology.value for topology in Topology)),
    integer("WIDTH", None, "chips in a row of a torus; default: as square as possible", 2, _CHIPS // 2),
    integer("LINK_BYTES", None, _LINK_BYTES, 8, 64),
    integer("LINK_LATENCY", 2, "cycles of a link's wire", 1, 64),
)

CORES = integer("CORES", 2, "participating cores of each chip", 1, 2)
_CORE = "core in the waveform; for few chips, because every core is compiled separately"
CORE = integer("CORE", None, _CORE, 0, MAX_CORES - 1)
_TARGET = "the collective engines only, or whole cores, which execute the collectives as images"
TARGET_OPTIONS = (
    choice("TARGET", "engine", _TARGET, ("engine", "core")),
    choice("PRESET", "tiny", "named configuration of whole cores", PRESETS),
    CORE,
)


def collective_options(*own: Option) -> tuple[Option, ...]:
    """Return the variables of a TEST of collectives, and `own`."""
    return (*INSTANCE_OPTIONS, *TARGET_OPTIONS, CORES, *own, ERRORS, SEED, LATENCY, STALL, *RECORDED)


def instance_of(settings: Settings) -> Instance:
    """Return the instance; cores of PRESET for TARGET=core, else only HBMs with beats of two flits if possible.

    UsageError if the instance is illegal, or a variable has no effect: WIDTH on a ring, PRESET without whole cores.
    """
    if settings.width and settings.topology == Topology.RING and not settings.values.get("BOTH"):
        raise UsageError(f"WIDTH must be given with TOPOLOGY=torus, not as {settings.width} for a ring")
    if settings.values.get("TARGET") == "engine" and "PRESET" in settings.non_defaults:
        raise UsageError(f"PRESET must be given with TARGET=core, not as {settings.preset} for collective engines only")
    named = INSTANCES.get(settings.values.get("INSTANCE"))
    chips = settings.chips or (named.chips if named else CHIPS)
    width = settings.width or max((w for w in range(2, chips) if chips % w == 0 and w * w <= chips), default=2)
    if settings.values.get("TARGET") == "core":
        core = PRESETS[settings.preset]
        link_bytes = settings.link_bytes or link_bytes_of(core)
    else:
        link_bytes = settings.link_bytes or (named.link_bytes if named else LINK_BYTES)
        if link_bytes & link_bytes - 1:
            raise UsageError(f"LINK_BYTES must be a power of two, not {link_bytes}")
        core = PRESETS["small"].with_overrides(hbm_bytes=min(64, 2 * link_bytes))
    links = {"link_bytes": link_bytes, "link_latency": settings.link_latency}
    try:
        return Instance(chips=chips, topology=Topology(settings.topology), width=width, core=core, **links)
    except ValueError as error:
        raise UsageError(str(error)) from None


def share_of(settings: Settings) -> float:
    """Return the share of disturbed frames; UsageError if ERRORS is not a share."""
    try:
        share = float(settings.errors)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 0.01:
        raise UsageError(f"ERRORS must be a number from 0 to 0.01, not {settings.errors!r}")
    return share


def groups_of(instance: Instance, cores: int, groups: int, stride: int) -> list[Group]:
    """Return groups of equal size; `cores` (1 or 2) of each chip's cores participate.

    Each rank is `stride` participating cores after the previous rank, and `stride` groups interleave. Raises UsageError
    if the cores cannot be divided in this way.
    """
    step = CORES_PER_CHIP // cores
    taking_part = instance.chips * cores
    ranks = taking_part // groups
    if taking_part % groups or groups % stride:
        raise UsageError(f"GROUPS must divide {taking_part} cores and be a multiple of STRIDE={stride}, not {groups}")
    if not 2 <= ranks <= MAX_RANKS:
        raise UsageError(f"GROUPS must result in 2 to {MAX_RANKS} cores per group, not {ranks}")
    blocks = range(0, taking_part, stride * ranks)
    return [Group(step * (block + first), step * stride, ranks) for block in blocks for first in range(stride)]
