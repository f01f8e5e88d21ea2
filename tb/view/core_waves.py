"""What a waveform of the core shows first, in groups, as far as it is two levels below the harness of
`tb/harness/cores.v`.

Queues and HBM at a glance are open; every queue and engine has a group of its own, closed until somebody looks.
"""

import re
from collections.abc import Collection

from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.memory.onchip import Conflicts
from neuroncore_rtl.hdl.queue.semaphores import UpdateOp
from neuroncore_rtl.hdl.tensor.engine import Counters as TensorCounters
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.isa import QUEUE_COUNTERS
from neuroncore_rtl.spec.isa.engine import LANES, QUEUES
from neuroncore_rtl.tb.view.wave_groups import AT_ROW0, CAUSE, Trace, elementwise_groups, tensor_fields

__all__ = ["OPEN", "core_groups"]

OPEN = ("run", "queues", "HBM ports")
"""Groups that are open at first."""


def core_groups(known: Collection[str]) -> dict[str, list[Trace]]:
    """Return the groups for the core that a waveform with these signals is of."""
    queues, ports = (_count(known, what) for what in (r"queue(\d+)\.clk", r"axi(\d+)\.clk"))
    dma = [f"dma{number}" for number in range(_count(known, r"dma(\d+)\.clk"))]
    names = [
        *(engine.name.lower() for engine in QUEUES),
        *dma,
        *(["collective"] if queues > len(QUEUES) + len(dma) else []),
    ]
    return {
        "run": [
            Trace("cycle", "cycle", "dec"),
            Trace("over", "program has ended", "bin"),
            Trace("quiet", "quiet", "bin"),
            Trace("core.errors.error.valid", "error", "bin"),
            Trace("core.controller.run", "controller runs", "bin"),
            Trace("controller_pc", "controller's pc"),
        ],
        "queues": [trace for queue, name in enumerate(names) for trace in _overview(queue, name)],
        "HBM ports": _hbm(),
        "controller": _controller(),
        "semaphores": _semaphores(),
        "errors": _errors(),
        **{f"queue {name}": _queue(queue) for queue, name in enumerate(names)},
        **_tensor(),
        **elementwise_groups("vector", "core."),
        **elementwise_groups("scalar", "core."),
        **{name: _dma(name) for name in dma},
        "memories: reads": _memories(ports, "reads"),
        "memories: writes": _memories(ports, "writes"),
        "memories: conflicts": _counters("core.memory.conflicts", Conflicts.as_shape().members),
    }


def _count(known: Collection[str], what: str) -> int:
    """Return how many there are of what is numbered in the core."""
    return len([name for name in known if re.fullmatch(rf"machine\.core\.{what}", name)])


def _counters(signal: str, names: Collection[str]) -> list[Trace]:
    return [Trace(f"{signal}.{name}", name.replace("_", " "), "dec") for name in names]


def _handshake(port: str, name: str) -> list[Trace]:
    return [Trace(f"{port}valid", f"{name} valid", "bin"), Trace(f"{port}ready", f"{name} ready", "bin")]


def _controller() -> list[Trace]:
    bus = "core.controller.peripheral__"
    return [
        Trace("controller_retires", "instruction retires", "bin"),
        Trace("controller_pc", "its pc"),
        Trace("core.controller.waiting", "in a wfi", "bin"),
        Trace("core.controller.external_interrupt", "external interrupt", "bin"),
        *_handshake(bus, "bus"),
        Trace(f"{bus}write", "write", "bin"),
        Trace(f"{bus}address", "address"),
        Trace(f"{bus}data", "written"),
        Trace(f"{bus}response", "response", "bin"),
        Trace(f"{bus}result", "result"),
        Trace(f"{bus}error", "bus error", "bin"),
    ]


def _overview(queue: int, name: str) -> list[Trace]:
    return [
        Trace(f"core.queue{queue}.waiting", f"{name}: waits for semaphore", "bin"),
        Trace(f"core.queue{queue}.issued", f"{name}: issues", "bin"),
        Trace(f"core.{name}.busy", f"{name}: engine busy", "bin"),
    ]


def _queue(queue: int) -> list[Trace]:
    at = f"core.queue{queue}"
    lanes = LANES[QUEUES[queue]] if queue < len(QUEUES) else 1
    return [
        *_handshake(f"{at}.blocks__", "block"),
        Trace(f"{at}.places", "places for blocks", "dec"),
        *_handshake(f"{at}.request__", "fetch"),
        Trace(f"{at}.record__valid", "record comes", "bin"),
        Trace(f"{at}.waiting", "waits for a semaphore", "bin"),
        *(
            Trace(f"{at}.wait[{number}].{name}", f"wait {number}: {name}", "bin" if name == "on" else "dec")
            for number in (0, 1)
            for name in ("on", "semaphore", "value")
        ),
        *_handshake(f"{at}.issue__", "issue"),
        Trace(f"{at}.issued_address", "its record"),
        Trace(f"{at}.busy", "has work", "bin"),
        Trace(f"{at}.completions", "engine has finished", "bin"),
        *(Trace(f"{at}.retired_address__{lane}", f"lane {lane}: record") for lane in range(lanes)),
        *_handshake(f"{at}.update__", "update"),
        Trace(f"{at}.update__payload.op", "operation", UpdateOp),
        Trace(f"{at}.update__payload.semaphore", "semaphore", "dec"),
        Trace(f"{at}.update__payload.value", "value", "dec"),
        Trace(f"{at}.halt", "halt", "bin"),
        Trace(f"{at}.error.valid", "error", "bin"),
        Trace(f"{at}.error.cause", "cause", CAUSE),
        *_counters(f"{at}.counters", QUEUE_COUNTERS),
    ]


def _tensor() -> dict[str, list[Trace]]:
    at = "core.tensor"
    return {
        "tensor: commands": [
            *_handshake(f"{at}.instructions__", "instruction"),
            *tensor_fields(at, "opcode", "dtype", "half", "k", "m", "n", "address", "stride", "psum", "accumulate"),
            Trace(f"{at}.loaded", "load retired", "bin"),
            Trace(f"{at}.retired", "multiplication retired", "bin"),
            Trace(f"{at}.error.valid", "error", "bin"),
            Trace(f"{at}.error.cause", "cause", CAUSE),
        ],
        "tensor: stationary": [
            *_handshake(f"{at}.stationary__", "SBUF"),
            Trace(f"{at}.stationary__address", "address"),
            Trace(f"{at}.step_valid", "load step", "bin"),
            Trace(f"{at}.load{AT_ROW0}", "row 0: load", "bin"),
            Trace(f"{at}.distance_at_row0", "row 0: distance", "dec"),
            *(Trace(f"{at}.edge0__weights_out__0__{n}", f"row 0: weight {n}") for n in range(LOAD_COLUMNS)),
        ],
        "tensor: moving": [
            *(Trace(f"{at}.wait_{what}", f"wait for {what}", "bin") for what in ("weights", "operand", "psum")),
            *_handshake(f"{at}.moving__", "SBUF"),
            Trace(f"{at}.moving__address", "address"),
            Trace(f"{at}.column_valid", "column valid", "bin"),
            Trace(f"{at}.swap{AT_ROW0}", "row 0: swap", "bin"),
            Trace(f"{at}.edge0__moving_out__0", "row 0: operand"),
            Trace(f"{at}.sum0", "sum of column 0 (FP32)"),
        ],
        "tensor: counters": _counters(f"{at}.counters", TensorCounters.as_shape().members),
    }


def _dma(name: str) -> list[Trace]:
    at = f"core.{name}"
    fields = [
        (f"{side}_{field}", isa.Storage if field == "storage" else "hex" if field == "address" else "dec")
        for side in ("src", "dst")
        for field in ("storage", "address", "partition", "axis")
    ]
    channels = [f"{at}.axi__{channel}" for channel in ("ar", "r", "aw", "w", "b")]
    return [
        *_handshake(f"{at}.instructions__", "instruction"),
        *(Trace(f"{at}.instructions__payload.count{n}", f"count {n}", "dec") for n in range(isa.DMA_DIMENSIONS)),
        *(Trace(f"{at}.instructions__payload.{field}", field.replace("_", " "), form) for field, form in fields),
        Trace(f"{at}.busy", "busy", "bin"),
        *(trace for channel in channels for trace in _handshake(channel, channel.partition("axi__")[2].upper())),
        Trace(f"{at}.axi__araddr", "AR address"),
        Trace(f"{at}.axi__awaddr", "AW address"),
        *(trace for side in ("read", "write") for trace in _line(f"{at}.{side}__", side)),
        Trace(f"{at}.retired", "copy retired", "bin"),
        Trace(f"{at}.error.valid", "error", "bin"),
        Trace(f"{at}.error.cause", "cause", CAUSE),
        *_counters(f"{at}.counters", DmaCounters.as_shape().members),
    ]


def _line(port: str, name: str) -> list[Trace]:
    return [
        *_handshake(port, name),
        Trace(f"{port}storage", f"{name} storage", isa.Storage),
        Trace(f"{port}partition", f"{name} partition", "dec"),
        Trace(f"{port}address", f"{name} address"),
    ]


def _memories(ports: int, direction: str) -> list[Trace]:
    """Return what is asked for in a direction, and whether it is granted, in the order of rank."""
    lockstep = {
        "reads": ("moving", "stationary", "vector_sbuf", "scalar_sbuf", "vector_psum", "scalar_psum"),
        "writes": ("vector_write", "scalar_write"),
    }
    found = []
    for name in lockstep[direction]:
        at = f"core.memory.{name}__"
        found += [*_handshake(at, name.replace("_", " ")), Trace(f"{at}address", "address")]
    for port in range(ports):
        found += _line(f"core.memory.line_{direction}__{port}__", f"line {port}")
    return found


def _hbm() -> list[Trace]:
    """Return the AXI signals of all ports, a bit or a part of each word for a port."""
    names = {
        "ar": ("id", "addr", "len"),
        "r": ("id", "last"),
        "aw": ("id", "addr", "len"),
        "w": ("last",),
        "b": ("id",),
    }
    return [
        trace
        for channel, fields in names.items()
        for trace in (
            *_handshake(channel, channel.upper()),
            *(Trace(f"{channel}{f}", f"{channel.upper()} {f}", "bin" if f == "last" else "hex") for f in fields),
        )
    ]


def _semaphores() -> list[Trace]:
    at = "core.semaphores"
    return [
        Trace(f"{at}.ready", "cleared", "bin"),
        Trace(f"{at}.satisfied", "waits satisfied, by queue", "bin"),
        Trace(f"{at}.updated", "update", "bin"),
        Trace(f"{at}.taken", "by queue, controller highest", "bin"),
        Trace(f"{at}.update.op", "operation", UpdateOp),
        Trace(f"{at}.update.semaphore", "semaphore", "dec"),
        Trace(f"{at}.update.value", "by", "dec"),
        Trace(f"{at}.result", "new value", "dec"),
        Trace(f"{at}.watch_reached", "watched value reached", "bin"),
    ]


def _errors() -> list[Trace]:
    at = "core.errors"
    return [
        Trace(f"{at}.error.valid", "error", "bin"),
        Trace(f"{at}.error.queue", "queue", "dec"),
        Trace(f"{at}.error.cause", "cause", CAUSE),
        Trace(f"{at}.error.address", "record"),
        Trace(f"{at}.error.detail", "detail"),
        Trace(f"{at}.boot.valid", "of boot", "bin"),
        Trace(f"{at}.watchdog.valid", "of the watchdog", "bin"),
        Trace("core.progress", "something moves", "bin"),
        Trace("core.registers.watchdog_limit", "watchdog limit", "dec"),
    ]
