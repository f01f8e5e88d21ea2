"""`make mutate`: the table of mutants that each unit's tests detect."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from rich.table import Column, Table

from neuroncore_rtl.run.report import RESULTS
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import terminal
from neuroncore_rtl.tb.campaign.mutation.equivalence import Finding
from neuroncore_rtl.tb.campaign.mutation.run import TestsFailed, mutate
from neuroncore_rtl.tb.campaign.mutation.units import MUTATED_UNITS

__all__ = ["lines_of_holes", "mutate_units", "retry_holes"]

BAR = 0.99  # required share: detected mutants of all mutants that are not equivalent


def mutate_units(settings: Settings) -> int:
    """Run mutation testing, write and print the records; return 0 if every tested unit's score is at least `BAR`."""
    names = [settings.unit] if settings.unit else list(MUTATED_UNITS)
    failed = False
    for name in names if settings.run else ():
        try:
            if settings.holes:
                record = retry_holes(name, settings.workers)
            else:
                record = mutate(name, settings.mutants, settings.seed, settings.workers).as_json()
        except TestsFailed as error:
            terminal(stderr=True).print(f"Error: {error}", markup=False)
            failed = True
            continue
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"mutate-{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    records = read_records(names)
    if not records:
        if failed:
            return 1
        raise UsageError(f"RUN=0 must follow a run; there is no record of {', '.join(names)}")
    terminal().print(table(records))
    for line in lines_of_holes(records):
        terminal().print(line, markup=False, soft_wrap=True)
    below = [record for record in records if record["score"] < BAR]
    return int(failed or bool(settings.run and below))


def retry_holes(name: str, workers: int) -> dict:
    """Test a unit's undetected mutants (holes) again; return the new record. UsageError if the unit has changed."""
    records = read_records([name])
    if not records:
        raise UsageError(f"HOLES=1 must follow a run; {name} has no record")
    (record,) = records
    holes = [hole["mutant"] for hole in record["holes"]]
    if not holes:
        return record
    again = mutate(name, record["asked"], record["seed"], workers, holes).as_json()
    if again["mutants"] != len(holes):
        raise UsageError(f"HOLES=1 must follow a run of the same unit; {name} has changed: run it without HOLES")
    caught = {test: Counter(by) for test, by in record["caught"].items()}
    for test, by in again["caught"].items():
        caught[test] = caught.get(test, Counter()) + Counter(by)
    total = sum(by.total() for by in caught.values())
    return record | {
        "caught": caught, "equal": record["equal"] | again["equal"], "holes": again["holes"], "tests": again["tests"],
        "score": total / (total + len(again["holes"])), "seconds": record["seconds"] + again["seconds"],
    }  # fmt: skip


def read_records(names: Iterable[str]) -> list[dict]:
    """Return the existing records of units."""
    files = [RESULTS / f"mutate-{name}.json" for name in names]
    return [json.loads(file.read_text()) for file in files if file.is_file()]


def table(records: Iterable[Mapping]) -> Table:
    """Return a table of the records."""
    figures = ("mutants", "caught", "by the first test", "equal: step", "induction", "so far", "holes", "score",
               "seconds")  # fmt: skip
    made = Table("unit", *(Column(heading, justify="right") for heading in figures))
    total = [0] * 8
    for record in records:
        caught = [sum(by.values()) for by in record["caught"].values()]
        equal = [finding for finding, _ in record["equal"].values()]
        ways = [equal.count(way.value) for way in (Finding.STEP, Finding.INDUCTION, Finding.BOUNDED)]
        counts = [record["mutants"], sum(caught), caught[0], *ways, len(record["holes"]), round(record["seconds"])]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        made.add_row(MUTATED_UNITS[record["unit"]].title, *_cells(counts))
    made.add_section()
    made.add_row("all", *_cells(total))
    return made


def _cells(counts: list[int]) -> list[str]:
    *others, holes, seconds = counts
    score = others[1] / (others[1] + holes) if others[1] + holes else 1.0
    return [*(f"{count:,}" for count in (*others, holes)), f"{score:.1%}", f"{seconds:,}"]


def lines_of_holes(records: Iterable[Mapping]) -> list[str]:
    """Return a line for each mutant that is neither detected nor equivalent."""
    return [
        f"{record['unit']}: {hole['mutant']}: {hole['finding']}"
        + (f" in cycle {hole['cycle']}" if hole["cycle"] is not None else "")
        for record in records
        for hole in record["holes"]
    ]
