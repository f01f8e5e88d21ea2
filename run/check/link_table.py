"""Activity of links: a table with a row per direction of each link, and its summary."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.report import Share
from neuroncore_rtl.spec.instance import Instance

__all__ = ["dead_links", "link_of", "link_rows", "link_summary", "link_table", "opposite"]

LISTED = 4
"""Maximum number of links with retries that a summary lists."""


def opposite(instance: Instance, wire: int) -> int:
    """Return the wire of the same link in the other direction."""
    chip, direction = divmod(wire, instance.directions)
    return instance.neighbour(chip, direction) * instance.directions + (direction ^ 1)


def link_of(instance: Instance, wire: int) -> int:
    """Return the wire of the same link that names the link: it leads up, or to the next column or row."""
    return opposite(instance, wire) if wire % instance.directions % 2 else wire


def dead_links(instance: Instance, dead: Collection[int]) -> list[int]:
    """Return the dead links, as the wires that name them; `dead` are the wires whose sender declared its link dead."""
    return sorted({link_of(instance, wire) for wire in dead})


def link_table(
    instance: Instance, counters: Sequence[Mapping[str, int]], cycles: int, dead: Collection[int] = ()
) -> dict[str, dict[str, Any]]:
    """Return the activity of each wire, by the name of its link and direction without the word link.

    A wire's receiver counts CRC errors and discarded flits; its sender counts flits, retries and stalls. `counters` are
    those of the link end that sends on each wire; for `dead` see `dead_links`.
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


def link_rows(table: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a `link_table` as a list with a row per wire, for the JSON record of a run."""
    return [{"link": name, **row} for name, row in table.items()]


def link_summary(instance: Instance, table: Mapping[str, Mapping[str, Any]], disturbed: int) -> dict[str, Any]:
    """Return a summary of a `link_table`: total counts, mean utilisation, busiest link, links with most retries."""
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
        "link_utilisation": {"mean": Share(mean), "busiest": Share(table[busiest]["utilisation"]), "link": busiest},
        "stalled_for_credits": {"most_cycles": longest} | ({"link": stalled} if longest else {}),
        "disturbed_frames": disturbed,
        "crc_errors": totals["crc_errors"],
        "retries": totals["retries"],
    }
    if retried:
        most = [{"link": name, "retries": table[name]["retries"]} for name in retried[:LISTED]]
        summary |= {"links_with_retries": len(retried), "most_retries": most}
    return summary | {"dead_links": dead or None}
