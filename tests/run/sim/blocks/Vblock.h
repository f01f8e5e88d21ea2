// A hierarchical block that steps a loop over lanes of its own at each edge of its clock.
#pragma once
#include "pool.h"

constexpr int LANES = 64;

struct Vblock {
  uint8_t clk;
  uint32_t edges, word[LANES];
  lanes::Loop loop;

  void eval_step();
};
