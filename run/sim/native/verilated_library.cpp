// The parts of Verilator's run-time library that every model needs, in one file: one compiler process instead of three.

#include "verilated.cpp"
#include "verilated_threads.cpp"
#include "verilated_vpi.cpp"

// Verilator appends each character of a written file to a string; libcxx.cpp has these functions without optimisation.
template class std::basic_string<char>;
