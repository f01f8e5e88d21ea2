"""What a workload of collectives runs on: the collective engines of an instance and its links, which is fast, or all of
its cores."""

from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.tb.benches.collective_execution import Executed
from neuroncore_rtl.tb.benches.collective_execution import execute as execute_on_engines
from neuroncore_rtl.tb.benches.instance_bench import CORE
from neuroncore_rtl.tb.benches.instance_collectives import execute_on_cores
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.sim.settings import Option, Settings
from neuroncore_rtl.tb.stimulus.collective_programs import Workload

__all__ = ["TARGET_OPTIONS", "execute", "target_label"]

TARGET_OPTIONS = (
    Option(
        name="TARGET",
        type=str,
        default="engine",
        help="the collective engines alone, or whole cores, which get the collectives as images",
        choices=("engine", "core"),
    ),
    Option(
        name="PRESET",
        type=str,
        default="tiny",
        help="named configuration of whole cores",
        choices=tuple(PRESETS),
    ),
    CORE,
)


def target_label(settings: Settings) -> str:
    """Return what the label of a run begins with: the preset of its cores, nothing if they are not there."""
    return f"{settings.preset}-" if settings.target == "core" else ""


def execute(
    instance: Instance,
    workload: Workload,
    settings: Settings,
    label: str,
    *,
    behaviour: Hbm,
    errors: float = 0.0,
    check_axi: bool = True,
    pictures: str | None = None,
) -> Executed:
    """Run a workload on the TARGET and on golden, and compare all memories byte for byte.

    Arguments:
        instance, workload, settings, label, behaviour, errors, pictures: as of
        `tb.benches.collective_execution.execute`.
        check_axi: whether the AXI ports are watched, of engines.
    """
    if settings.target == "core":
        return execute_on_cores(
            instance, workload, settings, label, behaviour=behaviour, errors=errors, pictures=pictures
        )
    return execute_on_engines(
        instance, workload, settings, label, behaviour=behaviour, errors=errors, check_axi=check_axi, pictures=pictures
    )
