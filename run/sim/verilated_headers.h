// What files that Verilator writes, and the main programs, include of Verilator's, precompiled; see objcache.sh.

#include "verilated.h"
#include "verilated_dpi.h"
#include "verilated_vpi.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif
