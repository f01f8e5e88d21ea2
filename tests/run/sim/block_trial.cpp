// Steps the block `ring` of test_threads.py with changing inputs and prints its last outputs.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern "C" void* ring_new();
extern "C" int ring_begin(void*, unsigned char reset, const uint32_t* given);
extern "C" void ring_end(void*, int, uint32_t* shown);

int main(int, char** arguments) {
  uint32_t given = 1, shown[128];
  void* ring = ring_new();
  for (int n = atoi(arguments[1]); n; n--) {
    const int step = ring_begin(ring, n % 500 == 0, &given);
    given = given * 1664525 + 1013904223;
    ring_end(ring, step, shown);
    given ^= shown[n % 128];
  }
  for (uint32_t word : shown) printf("%08x\n", word);
}
