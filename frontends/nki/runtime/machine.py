"""Machine for host calls of kernels: `neuroncore_rtl.frontends.nki.nki_machine`, also as a pytest plugin.

    python -m pytest -p neuroncore_rtl.frontends.nki.runtime.machine test_my_kernels.py

runs unmodified tests of the Neuron Kernel Interface. Each kernel that they call with numpy arrays runs on golden, or
with --nki-target=rtl on the RTL.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.nki.arguments import map_leaves
from neuroncore_rtl.frontends.nki.dialects.hook import answering
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.runtime.run import NKI_ORDER, recorded
from neuroncore_rtl.frontends.nki.trace.host import running
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.run.program import ProgramFailed, run
from neuroncore_rtl.run.settings import machine_of
from neuroncore_rtl.spec.config import PRESETS, Config

__all__ = ["nki_machine"]


@contextmanager
def nki_machine(
    preset: str | Config = "full", on: str = "golden", order: str = NKI_ORDER, **variables
) -> Iterator[None]:
    """Serve imports of the interface, and run kernels called with numpy arrays, in this context.

    Results are arrays of the kernel's types; arrays that a kernel writes are changed in place. A call raises as
    `frontends.nki.run_nki`, and IndexError if an index in memory exceeds its flattened tensor.

    Arguments:
        preset: the machine, "tiny" to "full" or a `Config`.
        on: the target, "golden", "model" or "rtl".
        order: order of a queue's instructions, "program" or "scheduled".
        variables: options of `run.run`, also parameters of the machine.
    """
    config, variables = machine_of(preset, variables)

    def runner(function: Callable, grid: tuple[int, ...], args: tuple, options: dict) -> object:
        return _called(config, function, grid, args, options, order, {"on": on, **variables})

    with answering(config, Path.cwd()), running(runner):
        yield


def _called(
    config: Config, function: Callable, grid: tuple[int, ...], args: tuple, options: dict, order: str, variables: dict
) -> object:
    arguments = inspect.signature(function).bind(*args, **options).arguments
    targets: dict[str, Any] = {}
    for name, given in arguments.items():
        map_leaves(targets.setdefault, name, given)
    made = recorded(function, arguments, config, grid, order)
    try:
        done = run(made.program, made.inputs, **variables)
    except ProgramFailed as failed:
        if failed.beyond is None:
            raise
        raise IndexError("index {} is out of bounds for axis 0 with size {}".format(*failed.beyond)) from failed

    def read(view: View, tensor: HbmTensor) -> np.ndarray:
        return done.read(tensor).astype(view.dtype.dtype)

    for name, view in made.written.items():
        target = targets.get(name)  # an array that is a default has no target
        target = target[0] if isinstance(target, tuple) else target
        if target is not None:
            target[...] = read(view, view.allocation.in_hbm)
    outputs = tuple(map(read, made.results, made.outputs))
    return outputs[0] if len(outputs) == 1 else outputs


def pytest_addoption(parser) -> None:
    """Add --nki-preset and --nki-target."""
    parser.addoption("--nki-preset", default="full", choices=list(PRESETS), help="the machine that kernels run on")
    parser.addoption("--nki-target", default="golden", choices=["golden", "model", "rtl"], help="what it runs on")


def pytest_configure(config) -> None:
    """Install the machine before tests are imported."""
    machine = nki_machine(config.getoption("--nki-preset"), config.getoption("--nki-target"))
    machine.__enter__()
    config.add_cleanup(lambda: machine.__exit__(None, None, None))
