"""`python -m neuroncore_rtl`: the command line behind the Makefile, with the commands of tb/ and of bench/."""

from neuroncore_rtl.bench.commands import BENCH_COMMANDS
from neuroncore_rtl.tb.cli.commands import add_commands, app, main

__all__ = ["app", "main"]

add_commands(BENCH_COMMANDS)

if __name__ == "__main__":
    main()
