"""`python -m neuroncore_rtl`: the command line behind the Makefile, with the commands of tb/ and of bench/."""

import gc
import signal
import sys

_report = sys.excepthook


def _report_in_a_line(kind, error, trace) -> None:
    """Report Ctrl-C in one line, also while modules are being imported."""
    if not issubclass(kind, KeyboardInterrupt):
        return _report(kind, error, trace)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends what Python still does at its end
    print("interrupted", file=sys.stderr)
    sys.exit(130)


sys.excepthook = _report_in_a_line

from neuroncore_rtl import IN_CLONE  # noqa: E402 # after the hook

if IN_CLONE and sys.argv[1:] == ["help"]:  # in 0.1 s, without the imports of commands
    from neuroncore_rtl.tb.cli.overview import print_overview

    sys.exit(print_overview())

gc.disable()  # imports create no garbage

from neuroncore_rtl.bench.commands import BENCH_COMMANDS  # noqa: E402 # after the hook
from neuroncore_rtl.tb.cli.commands import add_commands, app, main  # noqa: E402

__all__ = ["app", "main"]

gc.freeze()
gc.enable()
add_commands(BENCH_COMMANDS)

if __name__ == "__main__":
    main()
