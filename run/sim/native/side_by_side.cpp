// Evaluation of all instances of a hierarchical block, side by side: at each edge of the clock, before the design above.
//
// At an edge an instance depends on its state and on inputs that it already has: the design above computes new ones
// from outputs of this edge, and evaluates an instance for them only at the next edge. That is exact if no output that
// depends on an input in the same cycle leads back to an input (hdl/chip.py). The linker (--wrap) replaces the
// evaluation that the block's wrapper calls.

#include "../../lanes/pool.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#include TEXT(BLOCK.h)

extern "C" {
void evaluate(BLOCK* block) asm("__real_" TEXT(EVALUATION));
void evaluate_before_first_edge(BLOCK* block) asm("__wrap_" TEXT(EVALUATION));
}

namespace {

BLOCK** instances;
int count;
bool begun;
lanes::Loop loop{};

void evaluate_range(void*, int first, int last) {
    lanes::inside = loop.shared;
    while (first != last) evaluate(instances[first < last ? first++ : --first]);
    lanes::inside = false;
}

}  // namespace

void evaluate_before_first_edge(BLOCK* block) {
    if (begun) return;
    int n = 0;
    while (n < count && instances[n] != block) n++;
    if (n == count) {
        instances = static_cast<BLOCK**>(realloc(instances, ++count * sizeof block));
        instances[n] = block;
    }
    evaluate(block);
}

// Evaluate all instances with a new level of the clock. If there are fewer than threads, one after another, with all
// threads for its lanes.
void step_blocks(bool clock) {
    begun = true;
    for (int n = 0; n < count; n++) instances[n]->CLOCK = clock;
    if (!lanes::pool.threads) lanes::pool.start();
    loop.body = evaluate_range;
    loop.count = count;
    loop.granules = count < lanes::pool.threads ? 0 : count;
    loop.unit = 1;
    loop.begin();
    loop.end();
}
