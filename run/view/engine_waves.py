"""Initial groups of the waveforms of engines and the controller's processor, each in its own harness."""

import re
from collections.abc import Collection

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseOpcode, Op
from neuroncore_rtl.hdl.elementwise.step import Phase
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.hdl.tensor.engine import TensorCounters
from neuroncore_rtl.hdl.tensor.instruction import TensorOpcode
from neuroncore_rtl.run.view.wave_groups import ERROR, Trace, counters, traces
from neuroncore_rtl.spec.config import LOAD_COLUMNS

__all__ = [
    "ELEMENTWISE_GROUPS", "RISCV_GROUPS", "ROW0_WEIGHTS", "TENSOR_GROUPS", "TENSOR_OPEN", "array_traces",
    "elementwise_groups", "tensor_fields", "tensor_groups",
]  # fmt: skip

ROW0_WEIGHTS = "\n".join(f"weights_row0_{n} hex row 0: weight {n}" for n in range(LOAD_COLUMNS))
"""Weights that a load step writes to row 0."""


def tensor_fields(engine: str) -> list[Trace]:
    """Return the lines for the instruction that is offered to a tensor engine."""
    table = """
        opcode Opcode | dtype FormatCode | half dec | k dec | m dec | n dec | row dec | column dec | address hex
        stride hex | psum hex | accumulate dec
    """
    return traces(table, f"{engine}.instructions__payload", TensorOpcode, FormatCode)


TENSOR_GROUPS: dict[str, list[Trace]] = {
    "commands": [*traces("instructions__ handshake", "engine"), *tensor_fields("engine"), *traces(ERROR, "engine")],
    "stationary": traces(
        f"""
        loader.waiting bin wait for shadow weights | loader.stalled bin wait for memory
        loader.step_valid bin load step | loader.index dec step | stationary__address hex
        load_at_row0 bin row 0: load | distance_at_row0 dec row 0: distance
        {ROW0_WEIGHTS}
        """,
        "engine",
    ),
    "moving": traces(
        """
        mover.wait_weights bin wait for weights | mover.wait_operand bin wait for operand
        mover.wait_psum bin wait for PSUM | mover.column_valid bin | mover.index dec column
        moving__address hex | swap_at_row0 bin row 0: swap
        moving_row0 hex row 0: operand
        """,
        "engine",
    ),
    "PSUM": traces("""
        engine.psum.valid bin write | engine.psum.write.partitions.first dec first partition
        engine.psum.write.partitions.end dec end of partitions
        engine.psum.write.address hex | engine.psum.write.accumulate bin
        engine.sum0 hex sum of column 0 (FP32) | engine.retired bin instruction retired
        drain_go bin read | engine.psum__address hex read address
    """),
    "counters": [*counters("", ["cycles"]), *counters("engine.counters", TensorCounters.as_shape().members)],
}
"""Groups of the tensor engine in `run/harness/engines/tensor.v`, from top to bottom."""

ARRAY = "systolic array"
"""Group of the array's first column, the topmost one."""

TENSOR_OPEN = (ARRAY, "commands", "moving", "PSUM")
"""Groups of the tensor engine that are open initially."""


def array_traces(known: Collection[str], top: str, engine: str) -> list[Trace]:
    """Return the lines of the array's first column, row by row, as far as recorded.

    Each row receives the moving operand a MAC latency after the row above, and so produces its sum: a diagonal.
    """
    tile = re.compile(rf"{re.escape(f'{top}.{engine}')}\.datapath\.array\.block_(\d+)_0\.tile_(\d+)_0\.active0")
    places = sorted(tuple(map(int, found.groups())) for found in map(tile.fullmatch, known) if found)
    found = []
    lines = ("moving_out", "operand", "moving"), ("active0", "operand", "weight"), ("out__0", "fp32", "sum")
    for signal, form, what in lines:
        for first, row in places:
            at = f"{engine}.datapath.array.block_{first}_0.tile_{row}_0"
            found += traces(f"{signal} {form} row {first + row}: {what}", at)
    return found


def tensor_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups of lines of a tensor engine's waveform; `known`: its signals."""
    return {ARRAY: array_traces(known, "tensor", "engine")} | TENSOR_GROUPS


_COMMANDS = f"""
    instructions__ handshake | instructions__payload.opcode Opcode
    instructions__payload.partitions dec | instructions__payload.count0 dec
    instructions__payload.count1 dec | instructions__payload.op0 Op | instructions__payload.op1 Op
    instructions__payload.dst_dtype FormatCode | instructions__payload.a_dtype FormatCode
    instructions__payload.b_dtype FormatCode | instructions__payload.overlap dec
    {ERROR}
"""

_STEPS = """
    sbuf__valid bin read SBUF | sbuf__ready bin SBUF ready | sbuf__address hex SBUF address
    psum__valid bin read PSUM | psum__ready bin PSUM ready | psum__address hex PSUM address
    lanes_valid bin to the lanes | lanes_step.opcode Opcode | lanes_step.phase Phase
    lanes_step.position dec
"""

_RESULTS = """
    result_valid bin from the lanes | write__valid bin write | write__ready bin
    write__storage OnChipStorage | write__address hex | write__enable bin partitions
    write__mask bin bytes | write__data hex | retired bin instruction retired
"""


def elementwise_groups(engine: str, parent: str = "") -> dict[str, list[Trace]]:
    """Return the groups of the vector or scalar engine; the path `parent` ends with a dot."""
    at = f"{parent}{engine}"
    counted = ("busy", "instructions", "elements", "wait_sbuf", "wait_psum", "wait_write")
    return {
        f"{engine}: commands": traces(_COMMANDS, at, ElementwiseOpcode, Op, FormatCode),
        f"{engine}: steps": traces(_STEPS, at, ElementwiseOpcode, Phase),
        f"{engine}: results": traces(_RESULTS, at, OnChipStorage),
        f"{engine}: counters": counters(f"{at}.counters", counted),
    }


ELEMENTWISE_GROUPS = {"run": counters("", ["cycles"]), **elementwise_groups("vector"), **elementwise_groups("scalar")}
"""Groups of the vector and the scalar engine; missing ones are omitted."""

RISCV_GROUPS = {
    "retired": traces("""
        trace_valid bin valid | trace_pc hex pc | trace_instruction hex instruction
        trace_rd dec register | trace_value hex value | trace_trap bin trap | trace_cause hex cause
        waiting bin in a wfi
    """),
    "fetch": traces("""
        fetch_ handshake | fetch_address hex address | fetch_response bin response | fetch_result hex result
    """),
    "data": traces("""
        data_ handshake | data_address hex address | data_write bin write | data_mask bin mask | data_data hex written
        data_response bin response | data_result hex result | data_error bin error
    """),
    "interrupts": traces("""
        now dec time | compare hex timer compares with | external bin external interrupt
    """),
}
"""Groups of the controller's processor in `run/harness/riscv.v`."""
