"""Published kernels, unedited, in checkouts of aws-neuron/nki-samples, aws-neuron-sdk and nki-library.

NKI_SAMPLES, NEURON_SDK and NKI_LIBRARY name the checkouts; without them the tests are skipped.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki import run_nki

CHECKOUTS = [Path(os.environ[name]) for name in ("NKI_SAMPLES", "NEURON_SDK", "NKI_LIBRARY") if os.environ.get(name)]

if not CHECKOUTS:
    pytest.skip("NKI_SAMPLES, NEURON_SDK and NKI_LIBRARY name no checkout", allow_module_level=True)

from tests.frontends.nki import library, published  # noqa: E402 (draws all kernels' arguments, in seconds)

FOUND = [
    pytest.param(kernel, checkout / kernel.file, id=f"{kernel.file.split('/')[0]}-{kernel.name}")
    for kernel in (*published.PUBLISHED, *library.LIBRARY)
    for checkout in CHECKOUTS
    if (checkout / kernel.file).is_file()
]
"""Available kernels, and their files."""


def run_kernel(kernel: published.Published, file: Path, capsys: pytest.CaptureFixture, **options) -> None:
    arguments = [(x[0], x[1]) if isinstance(x, tuple) and isinstance(x[0], np.ndarray) else x for x in kernel.arguments]
    done = run_nki(f"{file}:{kernel.function}", *arguments, grid=kernel.grid, preset="full", **options)
    errors = []
    for output, expected in zip(done.outputs, kernel.results(), strict=False):
        assert output.size == expected.size
        scale = np.abs(expected).max()
        errors.append(np.abs(output.reshape(expected.shape).astype(np.float64) - expected).max() / scale)
    with capsys.disabled():
        told = f"{max(errors):.2e} of the largest, {len(done.run.program.entries)} records, {dict(done.inserted)}"
        print(f"\n{kernel.name}: {told}" + (f", {done.run.cycles:,} cycles" if done.run.cycles else ""))
    assert max(errors) <= kernel.error
    if options["on"] == "rtl":
        assert done.run.compared and done.run.bit_exact


@pytest.mark.parametrize(("kernel", "file"), FOUND)
def test_a_published_kernel_runs_on_golden(kernel, file, capsys):
    run_kernel(kernel, file, capsys, on=os.environ.get("NKI_TARGET", "golden"))


@pytest.mark.parametrize(("file", "function", "arguments", "why"), published.REFUSED)
def test_a_published_kernel_that_does_not_run_says_why(file, function, arguments, why):
    found = [checkout / file for checkout in CHECKOUTS if (checkout / file).is_file()]
    if not found:
        pytest.skip(f"no checkout has {file}")
    with pytest.raises((ValueError, AttributeError), match=why):
        run_nki(f"{found[0]}:{function}", *arguments, preset="full", on="golden")


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "file"), [found for found in FOUND if found.values[0].rtl])
def test_a_published_kernel_is_bit_exact_on_the_rtl(kernel, file, capsys):
    run_kernel(kernel, file, capsys, on="rtl")
