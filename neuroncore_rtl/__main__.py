"""`python -m neuroncore_rtl`: the command line behind the Makefile, with the commands of tb/ and of bench/."""

from neuroncore_rtl.bench.commands import COMMANDS
from neuroncore_rtl.tb.cli.commands import add, app, main

__all__ = ["app", "main"]

add(COMMANDS)

if __name__ == "__main__":
    main()
