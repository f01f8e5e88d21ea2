// Verilator headers included by generated files and by the main programs, precompiled by objcache.sh.

#include "verilated.h"
#include "verilated_dpi.h"
#include "verilated_vpi.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif
