// Evaluates blocks at first, and then steps them. The program fails if a block or a lane of it was omitted or repeated.
#include <stdio.h>

#include "Vblock.h"

void step_blocks(bool clock);

int main(int, char** arguments) {
  static Vblock blocks[5];
  const uint32_t steps = (uint32_t)atoi(arguments[1]);
  for (Vblock& block : blocks) block.eval_step();
  for (uint32_t n = 0; n < steps; n++) {
    step_blocks(n % 2 == 0);
    for (Vblock& block : blocks) block.eval_step();  // the design above: nothing is left to do
  }
  for (Vblock& block : blocks) {
    if (block.edges != 1 + steps) return printf("%u edges\n", block.edges), 1;
    for (uint32_t word : block.word)
      if (word != 1 + 2 * steps) return printf("%u after %u steps\n", word, steps), 1;
  }
  return 0;
}
