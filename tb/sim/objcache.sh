#!/bin/sh
# Stands before the C++ compiler in Verilator's builds (its OBJCACHE): compiles Verilator's own run-time library once
# for each set of options and copies it from then on. Without this it is most of the time that a small design takes.
#
# Usage: RUNTIME_OBJECTS=<directory> objcache.sh <compiler> <arguments>; the compiler's version belongs in the directory.

object=
library=
previous=
for argument; do
    [ "$previous" = -o ] && object=$argument
    case $argument in */include/verilated*.cpp) library=$argument ;; esac
    previous=$argument
done
[ -n "$object" ] && [ -n "$library" ] || exec "$@"

# The name of the clock is for the main program alone.
cached=$RUNTIME_OBJECTS/$(printf '%s' "$*" | sed 's/ -DCLOCK=[^ ]*//' | sha256sum | cut -c 1-16).o
if [ ! -f "$cached" ]; then
    "$@" || exit
    mkdir -p "$RUNTIME_OBJECTS" && cp "$object" "$cached.$$" && mv "$cached.$$" "$cached"
    exit
fi
cp "$cached" "$object"
