"""TEST=router: traffic over routers and links only; flits on each link are compared with golden's routes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from neuroncore_rtl.golden.link import route
from neuroncore_rtl.hdl.link.end import LinkEnd
from neuroncore_rtl.run.check.link_table import dead_links, link_of, link_rows, link_summary, link_table, opposite
from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.harness.link_view import Cut
from neuroncore_rtl.run.harness.links.fabric import FabricDevice, Traffic, Way
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.job import DeviceJob
from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import RECORDED, SEED, Settings, UsageError, choice, integer
from neuroncore_rtl.run.view.tracks import link_tracks
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CHANNELS, CORES_PER_CHIP
from neuroncore_rtl.tb.tests.links.options import ERRORS, INSTANCE_OPTIONS, instance_of, share_of
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["NOTICE", "PATTERNS", "TEST", "failures_of", "measures_of", "noticed_after", "traffic_of"]

PATTERNS = {"uniform": 0, "hotspot": 1, "tornado": 2, "neighbour": 2, "all_to_all": 3}
"""Patterns, and their numbers in `run/harness/links/fabric.v`. hotspot: one flit in eight is sent to core 0. tornado:
almost half way around each ring. neighbour: to the next chip; on channel 1, the last two use the other direction.
"""

CUT_CYCLE = 1000
PATIENCE = 3 * LinkEnd.DEAD_CYCLES  # cycles without a moving flit
NOTICE = LinkEnd.DEAD_CYCLES + 256  # in-flight flits arrive first
LISTED = 5  # failures of a kind


def partners_of(instance: Instance, pattern: str) -> list[int]:
    """Return the destination core of each port; empty for random destinations."""
    if pattern not in ("tornado", "neighbour"):
        return []
    columns = instance.chips if instance.topology == Topology.RING else instance.width
    rows = instance.chips // columns
    across, down = (max(1, (n - 1) // 2) if pattern == "tornado" else 1 for n in (columns, rows))
    partners = []
    for core in range(instance.cores):
        chip, place = divmod(core, CORES_PER_CHIP)
        row, column = divmod(chip, columns)
        for sign in (1, -1):
            goal_row = row if rows == 1 or pattern == "neighbour" else (row + sign * down) % rows
            goal = goal_row * columns + (column + sign * across) % columns
            partners.append(goal * CORES_PER_CHIP + place)
    return partners


def traffic_of(instance: Instance, settings: Settings) -> Traffic:
    """Return the traffic that the variables describe; UsageError if CUT is not a wire."""
    wires = instance.chips * instance.directions
    if settings.cut is not None and settings.cut >= wires:
        raise UsageError(f"CUT must be a wire from 0 to {wires - 1}, not {settings.cut}")
    ports = CHANNELS * instance.cores
    flits, load, stall = -(-settings.flits // ports), settings.load / 100, settings.stall / 100
    return Traffic(
        flits=flits,
        limit=100_000 + round((4 * flits * ports + 2 * flits / load) / (1 - stall)),
        patience=PATIENCE,
        pattern=PATTERNS[settings.pattern],
        partners=partners_of(instance, settings.pattern),
        load=load,
        stall=stall,
        errors=share_of(settings),
        cut=None if settings.cut is None else Cut(settings.cut, CUT_CYCLE),
        seed=settings.seed,
        sampled=True,
    )


def failures_of(instance: Instance, traffic: Traffic, outcome: Outcome) -> Iterator[str]:
    """Yield the failures of a run."""
    yield from map(str, outcome.errors[:LISTED])
    yield from _shortfalls(outcome, may_miss=traffic.cut is not None)
    if outcome.ending != Ending.FINISHED and traffic.cut is None:
        yield f"every flit must arrive, but the run ended as {outcome.ending.name} after {outcome.cycles:,} cycles"
    yield from _deaths(instance, traffic, outcome)
    if outcome.ending == Ending.FINISHED:
        expected = _carried(instance, outcome.counters["sent"])
        for number, counters in enumerate(outcome.links.counters):
            if (found := counters["flits"]) != expected[number]:
                yield f"{link_name(instance, number)} must carry {expected[number]:,} flits, not {found:,}"
    disturbed = outcome.links.disturbed
    if not any(disturbed) and traffic.errors * outcome.cycles * len(disturbed) > 30:
        yield f"frames must be disturbed at a rate of {traffic.errors}, but none was"


def _shortfalls(outcome: Outcome, *, may_miss: bool) -> Iterator[str]:
    sent, received = outcome.counters["sent"], outcome.counters["received"]
    wrong = [way for way in sorted(sent.keys() | received.keys()) if sent[way] != received[way]]
    if may_miss:
        wrong = [way for way in wrong if sent[way] < received[way]]
    for way in wrong[:LISTED]:
        yield (
            f"from core {way.source} to core {way.destination} on channel {way.channel} {sent[way]:,} flits "
            f"must arrive, not {received[way]:,}"
        )
    if len(wrong) > LISTED:
        yield f"{len(wrong) - LISTED:,} more ways have lost or duplicated flits"


def _deaths(instance: Instance, traffic: Traffic, outcome: Outcome) -> Iterator[str]:
    """Yield a failure for each intact link that was declared dead, and for a cut link not declared dead in time."""
    cut = None if traffic.cut is None else link_of(instance, traffic.cut.wire)
    for link in dead_links(instance, outcome.links.dead):
        if link != cut:
            yield f"{link_name(instance, link)} is dead"
    if traffic.cut is not None:
        noticed, name = noticed_after(instance, traffic.cut, outcome), link_name(instance, traffic.cut.wire)
        if noticed is None:
            yield f"{name} was cut, but its receiving end has not declared the link dead"
        elif not 0 <= noticed <= NOTICE:
            yield f"{name} must be dead at most {NOTICE:,} cycles after the cut, not {noticed:,}"


def noticed_after(instance: Instance, cut: Cut, outcome: Outcome) -> int | None:
    """Return the cycles from a cut until the receiving end declares the link dead; None if it does not."""
    dead = outcome.links.dead.get(opposite(instance, cut.wire))
    return None if dead is None else dead - cut.cycle


def _carried(instance: Instance, sent: Mapping[Way, int]) -> Counter[int]:
    found = Counter()
    for way, flits in sent.items():
        for hop in route(instance, *way):
            found[hop.chip * instance.directions + hop.direction] += flits
    return found


def measures_of(instance: Instance, traffic: Traffic, outcome: Outcome) -> dict[str, object]:
    """Return the report rows of a run."""
    cycles, flits = max(outcome.cycles, 1), outcome.counters["received"].total()
    ports = CHANNELS * instance.cores
    links = link_table(instance, outcome.links.counters, outcome.cycles, outcome.links.dead)
    measures = {
        "flits": flits,
        "latency": {"mean": float(outcome.counters["latency"]), "longest": outcome.counters["longest"]},
        "accepted_load": Share(flits / cycles / ports),
        "flits_per_cycle": flits / cycles,
        **link_summary(instance, links, sum(outcome.links.disturbed)),
        "discarded": sum(counters["discarded"] for counters in outcome.links.counters),
    }
    if traffic.cut is not None:
        measures["cut"] = {
            "link": link_name(instance, traffic.cut.wire).removeprefix("link "),
            "cycle": traffic.cut.cycle,
            "noticed_after_cycles": noticed_after(instance, traffic.cut, outcome),
        }
    return measures


def _jobs(settings: Settings) -> Iterator[DeviceJob]:
    instance = instance_of(settings)
    traffic = traffic_of(instance, settings)
    yield DeviceJob(
        on=FabricDevice(instance=instance),
        load=traffic,
        doing=f"{traffic.flits * CHANNELS * instance.cores:,} flits",
        name="",
        instance=instance,
        title=f"{settings.pattern.replace('_', '-')} traffic",
        recorded=lambda outcome: link_tracks(instance, outcome.links.samples, credits=False),
    )


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    (done,) = results
    instance, traffic, outcome = done.job.instance, done.job.load, done.outcome
    return Report(
        settings=dict(settings.values) | {"FLITS": traffic.flits * CHANNELS * instance.cores},
        compared=outcome.counters["received"].total(),
        mismatches=outcome.counters["wrong"],
        ideal_cycles=max([*_carried(instance, outcome.counters["sent"]).values(), traffic.flits]),
        rows={
            **measures_of(instance, traffic, outcome),
            "simulated_cycles_per_second": round(outcome.cycles / outcome.seconds),
            **done.files,
        },
        failures=failures_of(instance, traffic, outcome),
        details={"links": link_rows(done.links)},
    )


TEST = Scenario(
    name="router",
    summary="traffic over routers and links only: every flit arrives once, in order and unchanged",
    options=(
        *INSTANCE_OPTIONS,
        choice("PATTERN", "uniform", "pattern of the destinations", PATTERNS),
        integer("FLITS", 100_000, "flits from all sources", 1, 1 << 29),
        integer("LOAD", 100, "percent of the cycles in which an idle source injects a flit", 1, 100),
        integer("STALL", 0, "percent of the cycles in which a sink stalls", 0, 90),
        ERRORS,
        integer("CUT", None, "wire to cut; the link must be reported: directions * chip + direction", 0),
        SEED,
        *RECORDED,
    ),
    jobs=_jobs,
    rows=_rows,
)
