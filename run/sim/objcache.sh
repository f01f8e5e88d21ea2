#!/bin/sh
# Stands before the C++ compiler in Verilator's builds (its OBJCACHE), and compiles once, for each set of options, what
# all designs have in common: Verilator's own run-time library, which is copied from then on, and its headers, which
# take a second in every file. Without this they are most of the time that a small design takes.
#
# Usage: RUNTIME_OBJECTS=<directory> objcache.sh <zig> c++ <arguments>; the compiler's version belongs in the directory.

key() { printf '%s\n' "$@" | sha256sum | cut -c 1-16; }

object=
library=
header=
options=
previous=
for argument; do
    [ "$previous" = -o ] && object=$argument
    case $argument in
        */include/verilated*.cpp) library=$argument ;;
        -include-pch) header=own ;;
        -DCLOCK=*) ;; # the name of the clock is for the main program alone
        -[DOfgm]* | -I/*) options="$options $argument" ;;
    esac
    previous=$argument
done
mkdir -p "$RUNTIME_OBJECTS" || exit

if [ -n "$object" ] && [ -n "$library" ]; then
    cached=$RUNTIME_OBJECTS/$(key "$library" "$object" $options).o
    if [ ! -f "$cached" ]; then
        "$@" || exit
        cp "$object" "$cached.$$" && mv "$cached.$$" "$cached"
        exit
    fi
    exec cp "$cached" "$object"
fi

[ -n "$header" ] && exec "$@"

# Each file has the options in another order. The times of Verilator's files do not matter, as its version does.
options=$(printf '%s\n' $options | sort)
cached=$RUNTIME_OBJECTS/$(key $options).pch
if [ ! -f "$cached" ]; then
    "$1" "$2" $options -fpch-instantiate-templates -Xclang -fno-pch-timestamp \
        -x c++-header "${0%/*}/verilated_headers.h" -o "$cached.$$" || exit
    mv "$cached.$$" "$cached" || exit
fi
exec "$@" -include-pch "$cached"
