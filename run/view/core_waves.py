"""Initial groups of a core's waveform, down to two levels below the harness `run/harness/cores.v`."""

import re
from collections.abc import Collection

from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.memory.onchip import Conflicts
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.hdl.queue.semaphores import UpdateOp
from neuroncore_rtl.hdl.tensor.engine import TensorCounters
from neuroncore_rtl.run.view.engine_waves import ROW0_WEIGHTS, array_traces, elementwise_groups, tensor_fields
from neuroncore_rtl.run.view.wave_groups import ERROR, Trace, counters, traces
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS
from neuroncore_rtl.spec.isa.engine import ENGINE_QUEUES, LANES

__all__ = ["CORE_OPEN", "core_groups"]

CORE_OPEN = ("run", "queues", "HBM ports")
"""Groups that are open initially."""


def core_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups of lines of a core's waveform; `known`: its signals."""
    queues, ports = (_count(known, what) for what in (r"queue(\d+)\.clk", r"axi(\d+)\.clk"))
    dma = [f"dma{number}" for number in range(_count(known, r"dma(\d+)\.clk"))]
    names = [*(engine.name.lower() for engine in ENGINE_QUEUES), *dma]
    names += ["collective"] if queues > len(names) else []
    return {
        "run": traces(_RUN),
        "queues": [trace for queue, name in enumerate(names) for trace in _overview(queue, name)],
        "HBM ports": traces(_HBM),
        "controller": traces(_CONTROLLER),
        "semaphores": traces(_SEMAPHORES, "core.semaphores", UpdateOp),
        "errors": traces(_ERRORS, "core"),
        **{f"queue {name}": _queue(queue) for queue, name in enumerate(names)},
        **_tensor(),
        "tensor: systolic array": array_traces(known, "machine", "core.tensor"),
        **elementwise_groups("vector", "core."),
        **elementwise_groups("scalar", "core."),
        **{name: _dma(name) for name in dma},
        "memories: reads": _memories(ports, "reads"),
        "memories: writes": _memories(ports, "writes"),
        "memories: conflicts": counters("core.memory.conflicts", Conflicts.as_shape().members),
    }


_RUN = """
    cycle dec | over bin program has ended | quiet bin | core.errors.error.valid bin error
    core.controller.run bin controller runs | controller_pc hex controller's pc
"""

_HBM = """
    ar handshake AR | arid hex AR id | araddr hex AR addr | arlen hex AR len
    r handshake R | rid hex R id | rlast bin R last
    aw handshake AW | awid hex AW id | awaddr hex AW addr | awlen hex AW len
    w handshake W | wlast bin W last
    b handshake B | bid hex B id
"""
"""AXI signals of all ports, one bit or part of each word per port."""

_CONTROLLER = """
    controller_retires bin instruction retires | controller_pc hex its pc
    core.controller.waiting bin in a wfi | core.controller.external_interrupt bin
    core.controller.peripheral__ handshake bus | core.controller.peripheral__write bin
    core.controller.peripheral__address hex | core.controller.peripheral__data hex written
    core.controller.peripheral__response bin | core.controller.peripheral__result hex
    core.controller.peripheral__error bin bus error
"""

_SEMAPHORES = """
    ready bin cleared | satisfied bin waits satisfied, by queue | updated bin update
    taken bin by queue, controller highest | update.op UpdateOp operation | update.semaphore dec
    update.value dec by | result dec new value | watch_reached bin watched value reached
"""

_ERRORS = """
    errors.error.valid bin error | errors.error.queue dec | errors.error.cause Cause
    errors.error.address hex record | errors.error.detail hex | errors.boot.valid bin of boot
    errors.watchdog.valid bin of the watchdog | progress bin something moves
    registers.watchdog_limit dec
"""


def _count(known: Collection[str], what: str) -> int:
    return len([name for name in known if re.fullmatch(rf"machine\.core\.{what}", name)])


def _overview(queue: int, name: str) -> list[Trace]:
    return traces(f"""
        core.queue{queue}.waiting bin {name}: waits for semaphore
        core.queue{queue}.issued bin {name}: issues | core.{name}.busy bin {name}: engine busy
    """)


def _queue(queue: int) -> list[Trace]:
    at = f"core.queue{queue}"
    lanes = LANES[ENGINE_QUEUES[queue]] if queue < len(ENGINE_QUEUES) else 1
    waits = [
        f"wait[{number}].{name} {form} wait {number}: {name}"
        for number in (0, 1)
        for name, form in (("on", "bin"), ("semaphore", "dec"), ("value", "dec"))
    ]
    records = [f"retired_address__{lane} hex lane {lane}: record" for lane in range(lanes)]
    table = """
        blocks__ handshake block | places dec places for blocks | request__ handshake fetch
        record__valid bin record arrives | waiting bin waits for a semaphore
        {waits}
        issue__ handshake issue | issued_address hex its record | busy bin has work
        completions bin engine has finished
        {records}
        update__ handshake update | update__payload.op UpdateOp operation
        update__payload.semaphore dec | update__payload.value dec | halt bin
    """.format(waits="\n".join(waits), records="\n".join(records))
    return [*traces(table + ERROR, at, UpdateOp), *counters(f"{at}.counters", QUEUE_COUNTERS)]


def _tensor() -> dict[str, list[Trace]]:
    at = "core.tensor"
    stationary = f"""
        stationary__ handshake SBUF | stationary__address hex | step_valid bin load step
        load_at_row0 bin row 0: load | distance_at_row0 dec row 0: distance
        {ROW0_WEIGHTS}
    """
    moving = """
        wait_weights bin wait for weights | wait_operand bin wait for operand
        wait_psum bin wait for psum | moving__ handshake SBUF | moving__address hex
        column_valid bin | swap_at_row0 bin row 0: swap | moving_row0 hex row 0: operand
        sum0 hex sum of column 0 (FP32)
    """
    retired = traces("loaded bin load retired | retired bin multiplication retired" + ERROR, at)
    return {
        "tensor: commands": [*traces("instructions__ handshake instruction", at), *tensor_fields(at), *retired],
        "tensor: stationary": traces(stationary, at),
        "tensor: moving": traces(moving, at),
        "tensor: counters": counters(f"{at}.counters", TensorCounters.as_shape().members),
    }


_COPY = "\n".join(
    [
        "instructions__ handshake instruction",
        *(f"instructions__payload.count{n} dec count {n}" for n in range(isa.DMA_DIMENSIONS)),
        *(
            f"instructions__payload.{side}_{field} {form}"
            for side in ("src", "dst")
            for field, form in (("storage", "Storage"), ("address", "hex"), ("partition", "dec"), ("axis", "dec"))
        ),
        "busy bin",
        *(f"axi__{channel} handshake {channel.upper()}" for channel in ("ar", "r", "aw", "w", "b")),
        "axi__araddr hex AR address | axi__awaddr hex AW address",
    ]
)


def _dma(name: str) -> list[Trace]:
    at = f"core.{name}"
    return [
        *traces(_COPY, at, isa.Storage),
        *(trace for side in ("read", "write") for trace in _line(f"{at}.{side}__", side)),
        *traces("retired bin copy retired" + ERROR, at),
        *counters(f"{at}.counters", DmaCounters.as_shape().members),
    ]


def _line(port: str, name: str) -> list[Trace]:
    table = f"""
        {port} handshake {name} | {port}storage OnChipStorage {name} storage
        {port}partition dec {name} partition | {port}address hex {name} address
    """
    return traces(table, "", OnChipStorage)


def _memories(ports: int, direction: str) -> list[Trace]:
    """Return the requests to the on-chip memories, each with its grant (ready), highest priority first."""
    lockstep = {
        "reads": ("moving", "stationary", "vector_sbuf", "scalar_sbuf", "vector_psum", "scalar_psum"),
        "writes": ("vector_write", "scalar_write"),
    }
    table = "".join(
        f"{name}__ handshake {name.replace('_', ' ')}\n{name}__address hex\n" for name in lockstep[direction]
    )
    lines = (_line(f"core.memory.line_{direction}__{port}__", f"line {port}") for port in range(ports))
    return [*traces(table, "core.memory"), *(trace for line in lines for trace in line)]
