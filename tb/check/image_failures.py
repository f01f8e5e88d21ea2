"""What is wrong with an image that ran on the RTL and on golden, besides what it left in the memories."""

from collections.abc import Iterator, Sequence

import numpy as np

from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.check.core_fault import explained
from neuroncore_rtl.tb.check.races import Race, events_of, find_races
from neuroncore_rtl.tb.harness.cores import CoreFault
from neuroncore_rtl.tb.harness.outcome import Ending, Outcome

__all__ = ["LISTED", "image_failures", "races_of"]

LISTED = 5
"""Differences and races that are named one by one."""


def races_of(run: Outcome, memory: np.ndarray, config: Config) -> list[Race]:
    """Return the races between the records of an image; arguments as of `image_failures`."""
    finished = [(e.queue, e.address, e.issued, e.retired) for e in run.events if e.retired is not None]
    return find_races(events_of(finished, memory, config), config)


def image_failures(
    run: Outcome, expected: CoreOutcome, memory: np.ndarray, config: Config, races: Sequence[Race] | None = None
) -> Iterator[str]:
    """Yield what is wrong with an image, a sentence each.

    Arguments:
        run: what became of it on the RTL.
        expected: and on golden.
        memory: uint8 [bytes], HBM from address 0 on, with the records.
        config: the machine's parameters.
        races: those of `races_of`, if they are known.
    """
    if run.ending == Ending.LIMIT:
        yield f"the program must end, but was given up after {run.cycles:,} cycles"
    error = expected.error and CoreFault(
        expected.error.queue, expected.error.cause, expected.error.address, expected.error.detail
    )
    if run.error != error:
        wanted, found = ("none" if one is None else explained(one, memory, config) for one in (error, run.error))
        yield f"the core's error must be {wanted}, not {found}"
    if run.exit_code != expected.exit_code:
        yield f"the program must exit with {expected.exit_code}, not {run.exit_code}"
    if run.console != (printed := expected.console.decode("latin-1")):
        yield f"the program must print {printed!r}, not {run.console!r}"
    if error is None:
        if sorted((event.queue, event.address) for event in run.events) != sorted(expected.records):
            yield f"as many records must be executed as on golden, {len(expected.records)}, not {len(run.events)}"
        if any(event.retired is None for event in run.events):
            yield "every record that an engine took must be finished"
    races = races_of(run, memory, config) if races is None else races
    yield from (f"race: {race}" for race in races[:LISTED])
    if len(races) > LISTED:
        yield f"and {len(races) - LISTED} more races"
