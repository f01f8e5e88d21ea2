// Interface of a compiled module; PORTS, the addresses of its ports, is defined before this text.
#include "Vtop.h"
#include <cstring>
extern "C" {
void* create() { return new Vtop; }
void evaluate(Vtop* top) { top->eval(); }
void* port(Vtop* top, int number) {
  void* const ports[] = {PORTS};
  return ports[number];
}
/* Each cycle's row of bytes holds the values of the ports `given`, one after the other; the ports `shown` are kept. */
void trace(Vtop* top, long cycles, const char* row, int ports, void** given, const long* sizes, int outputs,
           uint32_t** shown, uint32_t* kept) {
  for (long cycle = 0; cycle < cycles; cycle++) {
    for (int port = 0; port < ports; row += sizes[port++]) memcpy(given[port], row, sizes[port]);
    top->eval();
    for (int output = 0; output < outputs; output++) *kept++ = *shown[output];
    for (int level = 1; level >= 0; level--) {
      top->clk = level;
      top->eval();
    }
  }
}
}
