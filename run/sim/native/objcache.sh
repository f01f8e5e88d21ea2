#!/bin/sh
# Compiler wrapper (OBJCACHE) of Verilator's builds. It compiles the parts common to all designs once per set of options:
# Verilator's headers, which take a second in every file, and its run-time library, which is then copied. Without it they
# take most of a small design's build time.
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
        */verilated_library.cpp | */include/verilated*.cpp) library=$argument ;;
        -include-pch) header=own ;;
        -DCLOCK=* | -DBLOCK=* | -DEVALUATION=*) ;; # names that only the main program uses
        -[DOfgm]* | -I/*) options="$options $argument" ;;
    esac
    previous=$argument
done
mkdir -p "$RUNTIME_OBJECTS" || exit

[ -n "$header" ] && exec "$@"

# The order of options differs between files. Times of Verilator's files are ignored, since its version is in the path.
options=$(printf '%s\n' $options | sort)
headers=$RUNTIME_OBJECTS/$(key "${0%/*}" $options).pch
if [ ! -f "$headers" ]; then
    exec 9>"$headers.lock"
    flock 9 # a second compilation would replace what a design's own header has already been compiled with
    if [ ! -f "$headers" ]; then
        "$1" "$2" $options -fpch-instantiate-templates -Xclang -fno-pch-timestamp \
            -x c++-header "${0%/*}/verilated_headers.h" -o "$headers.$$" || exit
        mv "$headers.$$" "$headers" || exit
    fi
    exec 9>&-
fi

[ -n "$library" ] || exec "$@" -include-pch "$headers"
cached=$RUNTIME_OBJECTS/$(key "$library" "$object" $options).o
if [ ! -f "$cached" ]; then
    exec 9>"$cached.lock"
    flock 9 # another build may be compiling it
    if [ ! -f "$cached" ]; then
        "$@" -include-pch "$headers" || exit
        cp "$object" "$cached.$$" && mv "$cached.$$" "$cached"
        exit
    fi
fi
exec cp "$cached" "$object"
