"""What a waveform shows first, in groups: the engines and the controller's processor, each in its harness.

The core, which has all of them, is in `tb/view/core_waves.py`.
"""

import enum
from dataclasses import dataclass

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise import instruction as elementwise
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.hdl.tensor.instruction import Opcode
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import LOAD_COLUMNS

__all__ = [
    "AT_ROW0",
    "CAUSE",
    "ELEMENTWISE_GROUPS",
    "RISCV_GROUPS",
    "TENSOR_GROUPS",
    "Trace",
    "elementwise_groups",
    "tensor_fields",
]


@dataclass(frozen=True)
class Trace:
    """A line of the waveform.

    Arguments:
        signal: hierarchical name in the harness.
        alias: what it is called on the screen.
        format: "hex", "dec", "signed" or "bin", or an enumeration, whose names are shown.
    """

    signal: str
    alias: str
    format: object = "hex"


CAUSE = enum.IntEnum("Cause", {cause.name: cause.value for kind in (isa.Rule, isa.Cause) for cause in kind})
"""Causes of error, those that are broken rules among them."""


def tensor_fields(engine: str, *names: str) -> list[Trace]:
    """Return what is shown of an instruction that an instance of the tensor engine is offered."""
    formats = {"opcode": Opcode, "dtype": FormatCode, "address": "hex", "stride": "hex", "psum": "hex"}
    return [Trace(f"{engine}.instructions__payload.{name}", name, formats.get(name, "dec")) for name in names]


AT_ROW0 = TensorEngine.INPUT_LATENCY - 1
"""Number of the register with which a load step, or a swap, reaches row 0."""

TENSOR_GROUPS: dict[str, list[Trace]] = {
    "commands": [
        Trace("engine.instructions__valid", "valid", "bin"),
        Trace("engine.instructions__ready", "ready", "bin"),
        *tensor_fields("engine", "opcode", "dtype", "half", "k", "m", "n", "address", "stride", "psum", "accumulate"),
        Trace("engine.error.valid", "error", "bin"),
        Trace("engine.error.cause", "cause", CAUSE),
    ],
    "stationary": [
        Trace("engine.loader.waiting", "wait for shadow weights", "bin"),
        Trace("engine.loader.stalled", "wait for memory", "bin"),
        Trace("engine.loader.step_valid", "load step", "bin"),
        Trace("engine.loader.distance", "to tile", "dec"),
        Trace("engine.stationary__address", "address"),
        Trace(f"engine.load{AT_ROW0}", "row 0: load", "bin"),
        Trace("engine.distance_at_row0", "row 0: distance", "dec"),
        *(
            Trace(f"engine.edge0__weights_out__0__{column}", f"row 0: weight {column}")
            for column in range(LOAD_COLUMNS)
        ),
    ],
    "moving": [
        Trace("engine.mover.wait_weights", "wait for weights", "bin"),
        Trace("engine.mover.wait_operand", "wait for operand", "bin"),
        Trace("engine.mover.wait_psum", "wait for PSUM", "bin"),
        Trace("engine.mover.column_valid", "column valid", "bin"),
        Trace("engine.mover.index", "column", "dec"),
        Trace("engine.moving__address", "address"),
        Trace(f"engine.swap{AT_ROW0}", "row 0: swap", "bin"),
        Trace("engine.edge0__moving_out__0", "row 0: operand"),
    ],
    "PSUM": [
        Trace("engine.psum.valid", "write", "bin"),
        Trace("engine.psum.write.partitions", "partitions", "dec"),
        Trace("engine.psum.write.address", "address"),
        Trace("engine.psum.write.accumulate", "accumulate", "bin"),
        Trace("engine.sum0", "sum of column 0 (FP32)"),
        Trace("engine.retired", "instruction retired", "bin"),
        Trace("drain_go", "read", "bin"),
        Trace("engine.psum__address", "read address"),
    ],
    "counters": [
        Trace(name, name.replace("_", " "), "dec")
        for name in ("cycles", "busy", "columns", "macs", "loads", "wait_weights", "wait_operand", "wait_psum")
    ],
}
"""What is shown of the tensor engine in the harness of `tb/harness/tensor.v`, from top to bottom."""


def elementwise_groups(engine: str, parent: str = "") -> dict[str, list[Trace]]:
    """Return what is shown of the vector or the scalar engine.

    Arguments:
        engine: name of the instance.
        parent: what it is in, with a dot, if that is not the harness.
    """
    typed = {"opcode": elementwise.Opcode, "op0": elementwise.Op, "op1": elementwise.Op}
    typed |= {f"{access}_dtype": FormatCode for access in ("dst", "a", "b")}
    fields = ("opcode", "partitions", "count0", "count1", "op0", "op1", "dst_dtype", "a_dtype", "b_dtype", "overlap")
    at = f"{parent}{engine}"
    return {
        f"{engine}: commands": [
            Trace(f"{at}.instructions__valid", "valid", "bin"),
            Trace(f"{at}.instructions__ready", "ready", "bin"),
            *(Trace(f"{at}.instructions__payload.{name}", name, typed.get(name, "dec")) for name in fields),
            Trace(f"{at}.error.valid", "error", "bin"),
            Trace(f"{at}.error.cause", "cause", CAUSE),
        ],
        f"{engine}: steps": [
            Trace(f"{at}.sbuf__valid", "read SBUF", "bin"),
            Trace(f"{at}.sbuf__ready", "SBUF ready", "bin"),
            Trace(f"{at}.sbuf__address", "SBUF address"),
            Trace(f"{at}.psum__valid", "read PSUM", "bin"),
            Trace(f"{at}.psum__ready", "PSUM ready", "bin"),
            Trace(f"{at}.psum__address", "PSUM address"),
            Trace(f"{at}.lanes_valid", "to the lanes", "bin"),
            Trace(f"{at}.lanes_step.opcode", "opcode", elementwise.Opcode),
            Trace(f"{at}.lanes_step.phase", "phase", Phase),
            Trace(f"{at}.lanes_step.position", "position", "dec"),
        ],
        f"{engine}: results": [
            Trace(f"{at}.result_valid", "from the lanes", "bin"),
            Trace(f"{at}.write__valid", "write", "bin"),
            Trace(f"{at}.write__ready", "ready", "bin"),
            Trace(f"{at}.write__storage", "storage", OnChipStorage),
            Trace(f"{at}.write__address", "address"),
            Trace(f"{at}.write__enable", "partitions", "bin"),
            Trace(f"{at}.write__mask", "bytes", "bin"),
            Trace(f"{at}.write__data", "data"),
            Trace(f"{at}.retired", "instruction retired", "bin"),
        ],
        f"{engine}: counters": [
            Trace(f"{at}.counters.{name}", name.replace("_", " "), "dec")
            for name in ("busy", "instructions", "elements", "wait_sbuf", "wait_psum", "wait_write")
        ],
    }


ELEMENTWISE_GROUPS = {
    "run": [Trace("cycles", "cycles", "dec")],
    **elementwise_groups("vector"),
    **elementwise_groups("scalar"),
}
"""What is shown of the vector and the scalar engine, as far as they are there."""

RISCV_GROUPS = {
    "retired": [
        Trace("trace_valid", "valid", "bin"),
        Trace("trace_pc", "pc"),
        Trace("trace_instruction", "instruction"),
        Trace("trace_rd", "register", "dec"),
        Trace("trace_value", "value"),
        Trace("trace_trap", "trap", "bin"),
        Trace("trace_cause", "cause"),
        Trace("waiting", "in a wfi", "bin"),
    ],
    "fetch": [
        Trace("fetch_valid", "valid", "bin"),
        Trace("fetch_ready", "ready", "bin"),
        Trace("fetch_address", "address"),
        Trace("fetch_response", "response", "bin"),
        Trace("fetch_result", "result"),
    ],
    "data": [
        Trace("data_valid", "valid", "bin"),
        Trace("data_ready", "ready", "bin"),
        Trace("data_address", "address"),
        Trace("data_write", "write", "bin"),
        Trace("data_mask", "mask", "bin"),
        Trace("data_data", "written"),
        Trace("data_response", "response", "bin"),
        Trace("data_result", "result"),
        Trace("data_error", "error", "bin"),
    ],
    "interrupts": [
        Trace("now", "time", "dec"),
        Trace("compare", "timer compares with"),
        Trace("external", "external interrupt", "bin"),
    ],
}
"""What is shown of the controller's processor in the harness of `tb/harness/riscv.v`."""
