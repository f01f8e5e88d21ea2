"""A machine that hosts of kernels find: `neuroncore_rtl.frontends.nki.nki_machine`, and a plugin of pytest with it.

    python -m pytest -p neuroncore_rtl.frontends.nki.runtime.machine test_my_kernels.py

runs tests that were written for the Neuron Kernel Interface as they are: each kernel that they call with arrays of
numpy runs on golden, or with --nki-target=rtl on the RTL.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from neuroncore_rtl.frontends.nki.dialects.hook import answering
from neuroncore_rtl.frontends.nki.runtime.run import NKI_ORDER, argument_of, recorded
from neuroncore_rtl.frontends.nki.trace.host import running
from neuroncore_rtl.run.program import ProgramFailed, run
from neuroncore_rtl.spec.config import PRESETS, Config, preset_named

__all__ = ["nki_machine"]


@contextmanager
def nki_machine(preset: str = "full", on: str = "golden", order: str = NKI_ORDER, **variables) -> Iterator[None]:
    """Answer imports of the interface within, and run the kernels that are called with arrays of numpy.

    Arrays come back as the kernel's types; those that a kernel writes to are changed in place.

    Arguments:
        preset: the machine, "tiny" to "full".
        on: the target, "golden", "model" or "rtl".
        order: of the instructions of a queue, "program" or "scheduled".
        variables: those of :func:`neuroncore_rtl.run.run`.

    Raises:
        IndexError: if a number in memory is beyond its tensor, whose elements are counted as one row.
        ValueError, ProgramFailed: where a kernel is called, as of :func:`neuroncore_rtl.frontends.nki.run_nki`.
    """
    config = preset_named(preset)

    def runner(function: Callable, grid: tuple[int, ...], args: tuple, options: dict) -> object:
        return _called(config, function, grid, args, options, order, {"on": on, **variables})

    with answering(config, Path.cwd()), running(runner):
        yield


def _called(
    config: Config, function: Callable, grid: tuple[int, ...], args: tuple, options: dict, order: str, variables: dict
) -> object:
    given = inspect.signature(function).bind(*args, **options).arguments
    arguments = {name: argument_of(name, value) for name, value in given.items()}
    made = recorded(function, arguments, config, grid, order)
    try:
        done = run(made.program, made.inputs, **variables)
    except ProgramFailed as failed:
        if failed.beyond is None:
            raise
        raise IndexError("index {} is out of bounds for axis 0 with size {}".format(*failed.beyond)) from failed

    def read(view) -> np.ndarray:
        return done.read(view.allocation.tensor(0)).astype(view.dtype.dtype).reshape(view.shape)

    for name, view in made.written.items():
        target = given[name][0] if isinstance(given[name], tuple) else given[name]
        target[...] = read(view)
    outputs = tuple(read(view) for view in made.results)
    return outputs[0] if len(outputs) == 1 else outputs


def pytest_addoption(parser) -> None:
    """Add the machine's options to pytest's."""
    parser.addoption("--nki-preset", default="full", choices=list(PRESETS), help="the machine that kernels run on")
    parser.addoption("--nki-target", default="golden", choices=["golden", "model", "rtl"], help="what it runs on")


def pytest_configure(config) -> None:
    """Plug the machine in before tests are imported."""
    machine = nki_machine(config.getoption("--nki-preset"), config.getoption("--nki-target"))
    machine.__enter__()
    config.add_cleanup(lambda: machine.__exit__(None, None, None))
