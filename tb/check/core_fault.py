"""The core's error in words: which engine, which instruction, and what is wrong with it."""

import numpy as np

from neuroncore_rtl.kernels.text.assembly import record_text
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import (
    HEADER_BITS,
    RECORD_BYTES,
    Cause,
    Engine,
    Record,
    cause_name,
    engine_of_queue,
    queue_name,
)
from neuroncore_rtl.spec.isa.registry import instruction_type
from neuroncore_rtl.tb.harness.collective_faults import disagreement_text
from neuroncore_rtl.tb.harness.cores import CoreFault

__all__ = ["explained"]


def explained(fault: CoreFault, memory: np.ndarray, config: Config) -> str:
    """Return a sentence about an error.

    Arguments:
        fault: the error.
        memory: uint8 [bytes], HBM from address 0 on, with the records.
        config: the machine's parameters.
    """
    cause = f"{cause_name(fault.cause)}{_detail(fault)}"
    if fault.cause == Cause.BOOT:
        return cause
    return (
        f"{queue_name(fault.queue, config)}, record {fault.address:#x}, {_instruction(fault, memory, config)}: {cause}"
    )


def _detail(fault: CoreFault) -> str:
    detail = fault.detail
    match fault.cause:
        case Cause.ENGINE:
            names = {int(engine): engine.name for engine in Engine}
            return f" (the record is for {names.get(detail, f'none, {detail}')})"
        case Cause.SEMAPHORE:
            return f" (semaphore {detail} would leave its range)"
        case Cause.WATCHDOG:
            wanted, low = detail >> 8 & 0xFFFF, detail >> 24
            return f" (semaphore {detail & 0xFF} must be at least {wanted}; its lowest 8 bits are {low})"
        case Cause.INDEX:
            return f" (row {detail})"
        case Cause.STUCK if detail >> 8 & 1:
            return f" (it waits for core {detail & 0xFF})"
        case Cause.DISAGREE:
            return f" ({disagreement_text(detail)})"
        case Cause.LINK:
            return f" (the chip's link of direction {detail})"
        case Cause.BOOT:
            return f" (word {detail} of the image's header is wrong, or it cannot be read)"
    return ""


def _instruction(fault: CoreFault, memory: np.ndarray, config: Config) -> str:
    """Return the record's line of assembly; if its codes mean nothing, its opcode."""
    data = memory[fault.address : fault.address + RECORD_BYTES].tobytes()
    if len(data) < RECORD_BYTES:
        return "beyond HBM"
    try:
        return record_text(Record.decode(data, config).shortened())
    except ValueError:
        kind = instruction_type(engine_of_queue(fault.queue, config))
        values = kind.unpack(int.from_bytes(data, "little") >> HEADER_BITS)
        return f"opcode {values['opcode']}"
