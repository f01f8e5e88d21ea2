"""What a program of one's own left, and how it ran."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.kernels.program.source import Line
from neuroncore_rtl.run.arrays import numbers_of
from neuroncore_rtl.run.report import shown
from neuroncore_rtl.run.view.source_lines import LineCycles
from neuroncore_rtl.spec.isa import Storage

__all__ = ["Result"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A program that came to its end; printed, it is a table.

    Arguments:
        program: what ran.
        target: on what, "rtl", "golden" or "model"; on golden only the memory is known, on the model cycles are those
            of the timing model (`golden.timing`), and stalls are by its causes.
        memory: HBM in the end, uint8 [bytes] from address 0.
        cycles: from start to end.
        utilisation: share of the cycles in which an engine worked: "tensor", of which columns entered the array,
            "vector", "scalar", and "dma", the busiest one.
        stalls: for each queue that had records, the cycles in which its engine got none: it had nothing to do (idle),
            or its next record was on its way (wait_fetch), waited for others (wait_semaphore) or for the engine
            (wait_engine).
        compared, mismatches: bytes of HBM that were compared with golden's, and how many of them differ.
        lines: by the kernel's line the cycles in which an engine worked for it (`run.view.source_lines`).
        timeline: a file for https://ui.perfetto.dev.
        waveform: for GTKWave, if one was asked for.
        profile: the folder of a profile, if one was asked for; then also `busiest`, the queue whose engine worked most,
            and `causes`, where all cycles of that engine went (`run.view.profile.stalls`).
    """

    program: Program
    target: str
    memory: np.ndarray
    cycles: int | None = None
    utilisation: Mapping[str, float] = field(default_factory=dict)
    stalls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    compared: int = 0
    mismatches: int = 0
    lines: Mapping[Line, LineCycles] = field(default_factory=dict)
    timeline: Path | None = None
    waveform: Path | None = None
    profile: Path | None = None
    busiest: str | None = None
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def bit_exact(self) -> bool | None:
        """Whether the RTL left every byte of HBM as golden did; None if no RTL ran."""
        return None if self.target != "rtl" else self.compared > 0 and self.mismatches == 0

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """What the program wrote: its tensors in HBM by name, float32 for every floating-point format, else int8,
        int16 or int32. Of several with a name the first one."""
        return {name: self.read(tensor) for name, tensor in self._outputs.items()}

    @cached_property
    def codes(self) -> dict[str, np.ndarray]:
        """The same as they are in memory, unsigned integers."""
        return {name: self.read_codes(tensor) for name, tensor in self._outputs.items()}

    def read(self, tensor: HbmTensor) -> np.ndarray:
        """Return the numbers of any tensor in HBM, or of a view of one."""
        return numbers_of(self.read_codes(tensor), tensor.format)

    def read_codes(self, tensor: HbmTensor) -> np.ndarray:
        """Return the codes of any tensor in HBM, or of a view of one."""
        return np.ascontiguousarray(tensor.elements(self.memory))

    @cached_property
    def _outputs(self) -> dict[str, HbmTensor]:
        """The tensors of which an instruction writes a part."""
        regions = (region for entry in self.program.entries for region in entry.instruction.writes)
        spans = {region.span for region in regions if region.storage == Storage.HBM}
        found: dict[str, HbmTensor] = {}
        for tensor in self.program.space.hbm_tensors:
            first, end = tensor.address, tensor.address + tensor.size * tensor.format.bits // 8
            if any(low < end and high > first for low, high in spans):
                found.setdefault(tensor.name, tensor)
        return found

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(heading) for heading, _ in rows)
        return "\n".join(f"{heading:{width}}  {text}" for heading, text in rows)

    def _rows(self) -> Iterator[tuple[str, str]]:
        config = self.program.config
        yield "target", f"{self.target}, {config.rows} x {config.columns} processing elements"
        if self.cycles is not None:
            yield "cycles", f"{self.cycles:,}" + " by the timing model: no RTL has run" * (self.target == "model")
            yield "utilisation", ", ".join(f"{name} {share:.1%}" for name, share in self.utilisation.items())
            for queue, causes in self.stalls.items():
                yield f"stalls of {queue}", ", ".join(f"{cause} {count:,}" for cause, count in causes.items() if count)
        if self.bit_exact is not None:
            yield "bit-exact", f"{'yes' if self.bit_exact else 'no'}, {self.compared:,} bytes compared"
        if self.timeline is not None:
            yield "timeline", shown(self.timeline)
        if self.waveform is not None:
            yield "waveform", shown(self.waveform)
        if self.profile is not None:
            yield "profile", shown(self.profile)
            counts = ", ".join(f"{cause} {count:,}" for cause, count in self.causes.items() if count)
            yield f"cycles of {self.busiest}", counts
        for name, array in self.arrays.items():
            yield name, f"{list(array.shape)} {self._outputs[name].format.name}"
