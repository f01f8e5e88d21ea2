// The parts of Verilator's run-time library that every model needs, in one file: one compiler process instead of three.

#include "verilated.cpp"
#include "verilated_threads.cpp"
#include "verilated_vpi.cpp"
