"""What the links of an instance did, as a report tells it: a table with a line for each direction of each link, which
programs read, and a few figures of it for people."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.spec.instance import Instance

__all__ = ["dead_links", "link_of", "link_summary", "link_table", "opposite"]

LISTED = 4
"""Links that are told of by name, the worst."""


def opposite(instance: Instance, wire: int) -> int:
    """Return the wire of the same link that leads the other way."""
    chip, direction = divmod(wire, instance.directions)
    return instance.neighbour(chip, direction) * instance.directions + (direction ^ 1)


def link_of(instance: Instance, wire: int) -> int:
    """Return the wire that gives the link of a wire its name: the one that leads up, or to the next column or row."""
    return opposite(instance, wire) if wire % instance.directions % 2 else wire


def dead_links(instance: Instance, dead: Collection[int]) -> list[int]:
    """Return the links that one of their ends has given up; `dead` are the wires that such ends send on."""
    return sorted({link_of(instance, wire) for wire in dead})


def link_table(
    instance: Instance, counters: Sequence[Mapping[str, int]], cycles: int, dead: Collection[int] = ()
) -> dict[str, dict[str, Any]]:
    """Return what each wire did, by the name of its link and direction, without the word link.

    What is found at the end of a wire, its receiver counts: frames with a wrong check, flits that are not taken. What
    is waited for, its sender.

    Arguments:
        instance: the instance.
        counters: by wire, those of the end that sends on it.
        cycles: of the run.
        dead: wires whose sending end has given its link up.
    """
    gone = set(dead_links(instance, dead))
    table = {}
    for wire, sends in enumerate(counters):
        receives = counters[opposite(instance, wire)]
        table[link_name(instance, wire).removeprefix("link ")] = {
            "utilisation": sends["flits"] / max(cycles, 1),
            "flits": sends["flits"],
            "retries": sends["replays"],
            "crc_errors": receives["crc_errors"],
            "discarded": receives["discarded"],
            "stalled_cycles": sends["stalled"],
            "dead": link_of(instance, wire) in gone,
        }
    return table


def link_summary(instance: Instance, table: Mapping[str, Mapping[str, Any]], disturbed: int) -> dict[str, Any]:
    """Return what a report says of a table: sums, the mean, and by name the busiest link and those with most retries.

    Arguments:
        instance: the instance.
        table: as `link_table` returns it.
        disturbed: frames that were.
    """
    totals = {name: sum(row[name] for row in table.values()) for name in ("flits", "retries", "crc_errors")}
    busiest = max(table, key=lambda name: table[name]["utilisation"])
    stalled = max(table, key=lambda name: table[name]["stalled_cycles"])
    retried = sorted((name for name in table if table[name]["retries"]), key=lambda name: -table[name]["retries"])
    named = [link_of(instance, wire) == wire for wire in range(len(table))]
    dead = [f"link {name}" for own, (name, row) in zip(named, table.items(), strict=True) if own and row["dead"]]
    mean = sum(row["utilisation"] for row in table.values()) / len(table)
    longest = table[stalled]["stalled_cycles"]
    summary: dict[str, Any] = {
        "link_flits": totals["flits"],
        "link_utilisation": {"mean": f"{mean:.1%}", "busiest": f"{table[busiest]['utilisation']:.1%} ({busiest})"},
        "stalled_for_credits": f"{longest:,} cycles at most ({stalled})" if longest else "never",
        "disturbed_frames": disturbed,
        "crc_errors": totals["crc_errors"],
        "retries": totals["retries"],
    }
    if retried:
        listed = [f"{name} {table[name]['retries']:,}" for name in retried[:LISTED]]
        listed += ["..."] if len(retried) > LISTED else []
        summary["links_with_retries"] = f"{len(retried)} of {len(table)}: {', '.join(listed)}"
    return summary | {"dead_links": ", ".join(dead) or "none"}
