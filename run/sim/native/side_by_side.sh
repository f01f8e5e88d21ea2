#!/bin/sh
# Verilator with the wrapper of run/sim/side_by_side.py: makefiles take one word as the program's name.

exec "$PYTHON" -I "$SIDE_BY_SIDE" "$VERILATOR" "$@"
