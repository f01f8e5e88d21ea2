"""The core's error in words: which engine, which instruction, and what is wrong with it."""

import numpy as np

from neuroncore_rtl.kernels.text.assembly import record_text
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
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
    cause = f"{isa.cause_name(fault.cause)}{_detail(fault)}"
    if fault.cause == isa.Cause.BOOT:
        return cause
    queue, text = isa.queue_name(fault.queue, config), _instruction(fault, memory, config)
    return f"{queue}, record {fault.address:#x}, {text}: {cause}"


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


def _instruction(fault: CoreFault, memory: np.ndarray, config: Config) -> str:
    """Return the record's line of assembly; if its codes mean nothing, its opcode."""
    data = memory[fault.address : fault.address + isa.RECORD_BYTES].tobytes()
    if len(data) < isa.RECORD_BYTES:
        return "beyond HBM"
    try:
        return record_text(isa.Record.decode(data, config).shortened())
    except ValueError:
        kind = instruction_type(isa.engine_of_queue(fault.queue, config))
        values = kind.unpack(int.from_bytes(data, "little") >> isa.HEADER_BITS)
        return f"opcode {values['opcode']}"
