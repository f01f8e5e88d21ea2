// Simulation loop of a Verilator model that drives the clock: the model is evaluated once per clock edge, and Python runs
// only for its triggers. The macro CLOCK is the name of the top-level clock input.
//
// cocotb's own main program evaluates the model at least twice per edge and leaves the clock to Python or to the
// interface between the two; with a model of 16,384 processing elements that is most of the time.
//
// Order within a time step, after IEEE 1800-2017 4.4: timed callbacks, clock edge, evaluation until no callback changes
// a value, read-write, read-only.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "Vtop.h"
#include "verilated.h"
#include "verilated_vpi.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

extern "C" void vlog_startup_routines_bootstrap(void);
#ifdef BLOCK
void step_blocks(bool clock);
#endif

namespace {

constexpr std::uint64_t HALF_PERIOD = 1000;  // in ps, the time precision: run/sim/clock.py's period is 2 ns

std::uint64_t now = 0;

void value_callbacks() {
    while (VerilatedVpi::callValueCbs()) {}
}

void settle(Vtop& top) {
    do {
        do {
            top.eval_step();
            VerilatedVpi::clearEvalNeeded();
            VerilatedVpi::doInertialPuts();
            value_callbacks();
        } while (VerilatedVpi::evalNeeded());
        VerilatedVpi::callCbs(cbReadWriteSynch);
        VerilatedVpi::doInertialPuts();
        value_callbacks();
    } while (VerilatedVpi::evalNeeded());
    top.eval_end_step();
    VerilatedVpi::callCbs(cbReadOnlySynch);
}

}  // namespace

double sc_time_stamp() { return static_cast<double>(now); }

int main(int argc, char** argv) {
    const char* trace_file = nullptr;
    int trace_levels = 99;
    for (int i = 1; i + 1 < argc; ++i) {
        if (!std::strcmp(argv[i], "--trace-file")) trace_file = argv[i + 1];
        if (!std::strcmp(argv[i], "--trace-levels")) trace_levels = std::atoi(argv[i + 1]);
    }
    Verilated::commandArgs(argc, argv);
    auto top = std::make_unique<Vtop>("");
    Verilated::fatalOnVpiError(false);  // cocotb probes for objects that need not exist
#if VM_TRACE
    VerilatedVcdC trace;
    Verilated::traceEverOn(true);
    if (trace_file) {
        top->trace(&trace, trace_levels);
        trace.open(trace_file);
    }
#else
    (void)trace_file, (void)trace_levels;
#endif

    top->CLOCK = 0;
    vlog_startup_routines_bootstrap();
    VerilatedVpi::callCbs(cbStartOfSimulation);
    value_callbacks();

    std::uint64_t next_edge = HALF_PERIOD;
    while (!Verilated::gotFinish()) {
        settle(*top);
#if VM_TRACE
        if (trace_file) trace.dump(now);
#endif
        const std::uint64_t deadline = VerilatedVpi::cbNextDeadline();
        now = deadline < next_edge ? deadline : next_edge;
        Verilated::time(now);
        VerilatedVpi::callCbs(cbNextSimTime);
        VerilatedVpi::callTimedCbs();
        value_callbacks();
        if (now == next_edge) {
            top->CLOCK = !top->CLOCK;
#ifdef BLOCK
            step_blocks(top->CLOCK);  // see side_by_side.cpp
#endif
            next_edge += HALF_PERIOD;
        }
    }

    top->final();
    VerilatedVpi::callCbs(cbEndOfSimulation);
#if VM_TRACE
    if (trace_file) trace.close();
#endif
    return Verilated::threadContextp()->errorCount() > 0;
}
