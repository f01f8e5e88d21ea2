"""Figures of a profile, named as by the tools of the real machine.

The summary is as of `neuron-profile view --output-format summary-json`, the utilisation as of `neuron-monitor`.
Times are seconds at the core's clock; shares are from 0 to 1 in the summary, percent in the monitor's report.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from neuroncore_rtl.run.view.profile.run import ProfiledRun
from neuroncore_rtl.run.view.profile.stalls import causes_of, counted_stalls
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import Engine, Storage, engine_of_queue

__all__ = ["CLOCK_HZ", "Figures"]

CLOCK_HZ = 1_400_000_000  # base clock of the core
FP32_PASSES = 4  # products of significand halves per FP32 product
_ERRORS = ("generic", "numerical", "transient", "model", "runtime", "hardware")
_FAILURES = ("completed_with_err", "completed_with_num_err", "timed_out", "incorrect_input", "failed_to_queue")


@dataclass(frozen=True)
class Figures:
    """Figures of a run; `hbm_width`: most bytes of HBM per cycle."""

    run: ProfiledRun
    hbm_width: int

    @cached_property
    def flops(self) -> dict[str, int]:
        """Operations of the array: "hardware", all; "transpose"; "model", without FP32's additional passes."""
        found: dict[str, int] = dict.fromkeys(("hardware", "transpose", "model"), 0)
        for ran in self.run.records:
            one: Any = ran.record.instruction
            if one.columns:
                done = 2 * one.k * one.m * one.n
                found["hardware"] += done
                found["transpose"] += done * one.transpose
                found["model"] += 0 if one.transpose else done // (FP32_PASSES if one.format is FP32 else 1)
        return found

    @cached_property
    def moved(self) -> dict[str, int]:
        found = {f"{storage.name.lower()}_{side}_bytes": 0 for storage in Storage for side in ("read", "write")}
        for ran in self.run.records:
            for side, storage, size in ran.record.instruction.transfers:
                found[f"{storage.name.lower()}_{side}_bytes"] += size
        return found

    @property
    def hbm_bytes(self) -> int:
        return self.moved["hbm_read_bytes"] + self.moved["hbm_write_bytes"]

    @property
    def intensity(self) -> float:
        """Operations of the array per byte of HBM."""
        return self.product_flops / self.hbm_bytes if self.hbm_bytes else 0.0

    @property
    def product_flops(self) -> int:
        return self.flops["hardware"] - self.flops["transpose"]

    @property
    def peak(self) -> int:
        return 2 * self.run.config.rows * self.run.config.columns

    @cached_property
    def stalls(self) -> dict[str, dict[str, int]]:
        """Cycles of each queue with records, busy or stalled, by cause; they sum to the run's cycles."""
        counts = {self.run.queue_name(queue): counted_stalls(causes_of(self.run, queue)) for queue in self.run.queues}
        return {queue: {cause.name.lower(): n for cause, n in own.items()} for queue, own in counts.items()}

    def summary(self) -> dict[str, object]:
        run, cycles = self.run, max(self.run.cycles, 1)
        found: dict[str, object] = {"name": run.name, "modelled": run.modelled, "clock_hz": CLOCK_HZ}
        found |= {"neuroncore_cycle_count": run.cycles, "total_time": run.cycles / CLOCK_HZ}
        for engine in Engine:
            queues = [queue for queue in run.queues if engine_of_queue(queue, run.config) == engine]
            active = max((run.worked(queue) for queue in queues), default=0)
            name = {Engine.DMA: "dma"}.get(engine, f"{engine.name.lower()}_engine")
            found |= {f"{name}_active_time": active / CLOCK_HZ, f"{name}_active_time_percent": active / cycles}
            found[f"{name}_instruction_count"] = sum(len(run.queues[queue]) for queue in queues)
        found |= {
            "matmul_instruction_count": sum(bool(ran.record.instruction.columns) for ran in run.records),
            **{f"{name}_flops": count for name, count in self.flops.items()},
            **self.moved,
            "mm_arithmetic_intensity": self.intensity,
            "peak_flops_bandwidth_ratio": self.peak / self.hbm_width,
            "mfu_estimated_percent": self.flops["model"] / (self.peak * cycles),
            "hfu_estimated_percent": self.flops["hardware"] / (self.peak * cycles),
            "mbu_estimated_percent": self.hbm_bytes / (self.hbm_width * cycles),
            "busiest_queue": run.queue_name(run.busiest) if run.queues else None,
            "stalls": self.stalls,
        }
        return {run.name: found}

    def monitor(self) -> Mapping[str, object]:
        """Return the utilisation of the core, which counts as used while its array is busy; the run is the period."""
        run = self.run
        seconds, used = run.cycles / CLOCK_HZ, run.worked(0) / max(run.cycles, 1)
        group = {"period": seconds, "error": ""}
        flops = round(self.flops["model"] / seconds) if run.cycles else 0
        core = {"neuroncore_utilization": 100 * used, "flops": flops}
        completed = int(all(ran.retired is not None for ran in run.records))
        latency = {f"p{share}": seconds for share in (0, 1, 25, 50, 75, 99, 100)}
        stats = {**group, "error_summary": dict.fromkeys(_ERRORS, 0)}
        stats["execution_summary"] = {"completed": completed, **dict.fromkeys(_FAILURES, 0)}
        stats["latency_stats"] = {"total_latency": latency, "device_latency": latency}
        report = {"neuroncore_counters": {**group, "neuroncores_in_use": {"0": core}}, "execution_stats": stats}
        hardware = {"neuron_device_type": "modelled" if run.modelled else "simulated", "neuroncore_version": "v2"}
        hardware |= {"neuron_device_count": 1, "neuroncore_per_device_count": run.config.cores, "error": ""}
        process = {"pid": 0, "neuron_runtime_tag": run.name, "error": "", "report": report}
        return {"neuron_runtime_data": [process], "neuron_hardware_info": hardware}
