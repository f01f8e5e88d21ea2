// Two loops at a time, whose granules read what other threads wrote in the step before. The program fails if a granule
// was omitted, repeated, or begun too early, in this process or in a child of it, or if a helper handled a signal.
#include <stdio.h>
#include <sys/wait.h>

#include "pool.h"

constexpr int COUNT = 256, UNIT = 16;
static bool failed;

struct Words {
  lanes::Loop loop;
  uint32_t step, word[2][COUNT];
};

static void body(void* of, int first, int last) {
  Words& s = *(Words*)of;
  const uint32_t *before = s.word[s.step & 1];
  uint32_t* after = s.word[~s.step & 1];
  if (s.step % 8 == 0) sched_yield();  // other threads come first
  while (first != last) {
    const int k = first < last ? first++ : --first;
    after[k] += 1 + before[COUNT - 1 - k] - after[k];
  }
}

static bool run(Words (&both)[2], uint32_t steps) {
  for (uint32_t n = 0; n < steps; n++) {
    for (Words& s : both) s.loop.begin();
    if (n % 16 == 0) kill(getpid(), SIGINT);
    for (Words& s : both) s.loop.end(), s.step++;
  }
  for (Words& s : both)
    for (uint32_t word : s.word[s.step & 1])
      if (word != s.step) return printf("%u after %u steps\n", word, s.step), false;
  return !failed;
}

int main(int, char** arguments) {
  static Words both[2];
  for (Words& s : both) s.loop = {body, &s, COUNT, UNIT, &s == both ? 16 : 3};
  signal(SIGINT, [](int) { failed |= gettid() != getpid(); });
  const uint32_t steps = (uint32_t)atoi(arguments[1]);
  if (!run(both, steps)) return 1;
  int status = 0;
  if (arguments[2]) {
    const pid_t child = fork();
    if (!child) _exit(!run(both, steps));
    waitpid(child, &status, 0);
  }
  return status || !run(both, steps);
}
