#include "Vblock.h"

static void body(void* of, int first, int last) {
  Vblock& block = *(Vblock*)of;
  for (int k = first; k < last; k++) block.word[k] += block.clk ? 3 : 1;
}

void Vblock::eval_step() {
  loop.body = body, loop.block = this, loop.count = LANES, loop.unit = 16, loop.granules = 4;
  edges++;
  loop.begin();
  loop.end();
}
