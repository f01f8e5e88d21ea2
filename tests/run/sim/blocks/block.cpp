#include "Vblock.h"

static void body(void* of, int first, int last) {
  Vblock& block = *(Vblock*)of;
  while (first != last) block.word[first < last ? first++ : --first] += block.clk ? 3 : 1;
}

void Vblock::eval_step() {
  loop.body = body, loop.block = this, loop.count = LANES, loop.unit = 16, loop.granules = 4;
  edges++;
  loop.begin();
  loop.end();
}
