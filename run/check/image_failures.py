"""Differences between runs of an image on RTL and golden besides memories; errors as sentences."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroncore_rtl.golden.core import CoreOutcome
from neuroncore_rtl.kernels.text.assembly import record_text
from neuroncore_rtl.run.check.races import find_races, race_events
from neuroncore_rtl.run.harness.collective_faults import disagreement_text
from neuroncore_rtl.run.harness.cores import CoreFault
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config

__all__ = ["LISTED", "explain_fault", "image_failures", "program_failures", "row_beyond"]

LISTED = 5
"""Maximum number of differences, of races, or of unwritten reads that a report lists."""


def image_failures(run: Outcome, expected: CoreOutcome, memory: np.ndarray, config: Config) -> Iterator[str]:
    """Yield the differences between the outcomes of RTL and golden; `memory` is HBM with the executed records."""
    if run.ending == Ending.LIMIT:
        yield f"the program must end, but was given up after {run.cycles:,} cycles"
    fault = expected.error
    error = fault and CoreFault(fault.queue, fault.cause, fault.address, fault.detail)
    if run.error != error:
        wanted, found = ("none" if one is None else explain_fault(one, memory, config) for one in (error, run.error))
        yield f"the core's error must be {wanted}, not {found}"
    yield from program_failures(run, expected)
    if error is None:
        if sorted((event.queue, event.address) for event in run.events) != sorted(expected.records):
            yield f"as many records must be executed as on golden, {len(expected.records)}, not {len(run.events)}"
        if any(event.retired is None for event in run.events):
            yield "every issued record must retire"
    finished = [(e.queue, e.address, e.issued, e.retired) for e in run.events if e.retired is not None]
    races = find_races(race_events(finished, memory, config), config)
    yield from (f"race: {race}" for race in races[:LISTED])
    if len(races) > LISTED:
        yield f"and {len(races) - LISTED} more races"


def program_failures(run: Outcome, expected: CoreOutcome, most: int | None = None) -> Iterator[str]:
    """Yield the differences of the exit code, and of the first `most` bytes of the console."""
    if run.exit_code != expected.exit_code:
        yield f"the program must exit with {expected.exit_code}, not {run.exit_code}"
    if run.console != (printed := expected.console[:most].decode("latin-1")):
        yield f"the program must print {printed!r}, not {run.console!r}"


def explain_fault(fault: CoreFault, memory: np.ndarray, config: Config) -> str:
    """Return a sentence that explains an error of a core; `memory` is HBM with its records."""
    cause = f"{isa.cause_name(fault.cause)}{_detail(fault)}"
    if fault.cause == isa.Cause.BOOT:
        return cause
    queue, text = isa.queue_name(fault.queue, config), _instruction(fault, memory, config)
    return f"{queue}, record {fault.address:#x}, {text}: {cause}"


def row_beyond(fault: CoreFault | None, memory: np.ndarray, config: Config) -> tuple[int, int] | None:
    """Return the element at which a gather or scatter with an out-of-range index would access its tensor.

    The second result is the tensor's number of elements; None for other errors.
    """
    if fault is None or fault.cause != isa.Cause.INDEX:
        return None
    copy: Any = isa.Record.decode(_record(fault, memory), config).instruction
    tensor, index = (copy.src, copy.gather) if copy.gather else (copy.dst, copy.scatter)
    return fault.detail * tensor.steps[0], index.limit * tensor.steps[0]


def _detail(fault: CoreFault) -> str:
    detail = fault.detail
    match fault.cause:
        case isa.Cause.ENGINE:
            names = {int(engine): engine.name for engine in isa.Engine}
            return f" (the record is for {names.get(detail, f'none, {detail}')})"
        case isa.Cause.SEMAPHORE:
            return f" (semaphore {detail} would leave its range)"
        case isa.Cause.WATCHDOG:
            wanted, low = detail >> 8 & 0xFFFF, detail >> 24
            return f" (semaphore {detail & 0xFF} must be at least {wanted}; its lowest 8 bits are {low})"
        case isa.Cause.INDEX:
            return f" (row {detail})"
        case isa.Cause.STUCK if detail >> 8 & 1:
            return f" (it waits for core {detail & 0xFF})"
        case isa.Cause.DISAGREE:
            return f" ({disagreement_text(detail)})"
        case isa.Cause.LINK:
            return f" (the chip's link of direction {detail})"
        case isa.Cause.BOOT:
            return f" (word {detail} of the image's header is wrong, or it cannot be read)"
    return ""


def _record(fault: CoreFault, memory: np.ndarray) -> bytes:
    return memory[fault.address : fault.address + isa.RECORD_BYTES].tobytes()


def _instruction(fault: CoreFault, memory: np.ndarray, config: Config) -> str:
    data = _record(fault, memory)
    if len(data) < isa.RECORD_BYTES:
        return "beyond HBM"
    try:
        return record_text(isa.Record.decode(data, config).shortened())
    except ValueError:
        kind = isa.instruction_type(isa.engine_of_queue(fault.queue, config))
        values = kind.unpack(int.from_bytes(data, "little") >> isa.HEADER_BITS)
        return f"opcode {values['opcode']}"
