"""`python -m neuroncore_rtl`: the command line behind the Makefile, with the commands of tb/ and of bench/."""

import sys

_report = sys.excepthook


def _report_in_a_line(kind, error, trace) -> None:
    """Report an interrupt in one line, also while modules are being imported."""
    if issubclass(kind, KeyboardInterrupt):
        sys.exit("interrupted")
    _report(kind, error, trace)


sys.excepthook = _report_in_a_line

from neuroncore_rtl.bench.commands import BENCH_COMMANDS  # noqa: E402 # after the hook
from neuroncore_rtl.tb.cli.commands import add_commands, app, main  # noqa: E402

__all__ = ["app", "main"]

add_commands(BENCH_COMMANDS)

if __name__ == "__main__":
    main()
