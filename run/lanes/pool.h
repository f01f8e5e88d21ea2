// Threads that step loops over instances beside the main thread, which evaluates the rest of the design.
//
// `Loop::begin` offers a loop, divided into granules, and returns; `Loop::end` waits for it. Each thread has a range of
// the granules: the main thread the first ones, as many as make all threads end together. So a granule is mostly stepped
// by the same thread, whose cache has its state. The main thread steps downwards, so that what the processor loads ahead
// is never the start of the next range. A thread takes half of what is left of its range at a time, since an atomic
// operation waits for all earlier stores, and in the end the granule of another range that its owner would take last,
// but not its only one: the owner, whose cache has its state, steps it in less time.
//
// Granules are disjoint, so results do not depend on who takes them. The main thread waits only for granules that
// helpers have taken, never for a helper that sleeps or, after a fork, does not exist.
#pragma once
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() __asm__ volatile("")
#endif

namespace lanes {

constexpr int MOST_THREADS = 64;
constexpr int SPINS = 200;        // pauses, some microseconds, before a waiting thread offers its processor
constexpr int OFFERS = 1000;      // offers, up to a millisecond, before a helper sleeps
constexpr uint64_t LATE = 100000; // ns of waiting for a helper that show a busy computer
constexpr int GRACE = 20;         // pauses, half a granule, before the main thread steps the last granule of a helper
constexpr float DRIFT = 0.02;     // granules by which the share changes in a step, more if the helpers are the last
constexpr int LONGEST = 1 << 14;

template <class T> static inline T get(const T& x) { return __atomic_load_n(&x, __ATOMIC_ACQUIRE); }

struct Loop {
  void (*body)(void* block, int first, int last);  // downwards if `last` is less
  void* block;
  int count, unit, granules;     // instances; they are divided at multiples of `unit`
  alignas(128) uint32_t step;    // apart from what a helper reads first
  bool shared;                   // this step has been offered to the helpers
  float share;                   // granules of a step that the main thread takes, on average
  uint32_t awaited;              // granules that helpers have taken in all steps
  alignas(128) uint32_t done;    // those that they have stepped
  struct alignas(128) { uint64_t of; } range[MOST_THREADS];  // of each thread: number of the step, first granule, end

  void begin();
  void end();
  int take(int thread, int least);
  bool left() const;
};

// One pool of a process: each library contains this code, and the loader selects one of them.
struct Pool {
  static constexpr uint32_t ROOM = 1024;

  int threads;         // 0 before the first loop
  int alone, penalty;  // loops that the main thread still executes alone, and their number after the next late helper
  alignas(128) uint32_t offered;
  Loop* last;                      // of those that have been offered
  alignas(128) uint32_t sleepers, bell;
  alignas(128) Loop* loops[ROOM];  // the last ones

  void start();
  void offer(Loop& loop);
  void wait(Loop& loop);
  void help(int thread);
  void sleep(uint32_t seen);
  static void* helper(void* thread);
};
inline Pool pool{};
inline thread_local bool inside;  // this thread steps an instance of a loop; it steps loops of that instance alone

// Take granules and step them; return their number, 0 if none is left: of another's range, if fewer than `least` are. An
// old `range` is never equal to a new one.
inline int Loop::take(int thread, int least) {
  for (int n = 0; n < pool.threads; n++) {
    const int owner = thread + n < pool.threads ? thread + n : thread + n - pool.threads;
    uint64_t& of = range[owner].of;
    for (uint64_t old = get(of); (old >> 16 & 0xffff) + (n ? least : 1) <= (old & 0xffff);) {
      const int from = (int)(old >> 16 & 0xffff), to = (int)(old & 0xffff), size = n ? 1 : (to - from + 1) / 2;
      const bool top = !owner == !n;
      const uint64_t rest = top ? old - size : old + ((uint64_t)size << 16);
      if (!__atomic_compare_exchange_n(&of, &old, rest, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
      const int units = count / unit, granule = top ? to - size : from;
      const int first = units * granule / granules * unit, last = units * (granule + size) / granules * unit;
      if (thread || n) body(block, first, last);
      else body(block, last, first);
      if (thread) __atomic_fetch_add(&done, size, __ATOMIC_RELEASE);
      return size;
    }
  }
  return 0;
}

// Return whether a granule waits to be taken.
inline bool Loop::left() const {
  for (int n = 0; n < pool.threads; n++) {
    const uint64_t of = get(range[n].of);
    if ((of >> 16 & 0xffff) < (of & 0xffff)) return true;
  }
  return false;
}

inline void Loop::begin() {
  shared = false;
  if (inside) return body(block, 0, count);
  if (!pool.threads) pool.start();
  shared = granules && pool.threads > 1 && !pool.alone;
  if (!shared) {
    if (pool.alone) pool.alone--;
    return body(block, 0, count);
  }
  step++;
  const int own = (int)(share + 0.5f), rest = granules - own, helpers = pool.threads - 1;
  for (int n = 0; n < pool.threads; n++) {
    const uint64_t first = n ? own + rest * (n - 1) / helpers : 0, last = own + rest * n / helpers;
    __atomic_store_n(&range[n].of, (uint64_t)step << 32 | first << 16 | last, __ATOMIC_RELEASE);
  }
  pool.offer(*this);
}

inline void Loop::end() {
  if (!shared) return;
  int taken = 0;
  while (const int size = take(0, 2)) taken += size;
  for (int turn = 0; turn < GRACE && left(); turn++) PAUSE();
  while (const int size = take(0, 1)) taken += size;
  awaited += granules - taken;
  share += (taken - share) / 8 + (get(done) == awaited ? -DRIFT : DRIFT);
  pool.wait(*this);
}

inline void Pool::offer(Loop& loop) {
  __atomic_store_n(&loops[offered % ROOM], &loop, __ATOMIC_RELAXED);
  __atomic_store_n(&last, &loop, __ATOMIC_RELAXED);
  __atomic_store_n(&offered, offered + 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST)) return;
  __atomic_add_fetch(&bell, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, MOST_THREADS, nullptr, nullptr, 0);
}

// Wait for granules that helpers have taken. If that is long, execute the next loops alone.
inline void Pool::wait(Loop& loop) {
  for (int turn = 0; turn < SPINS; turn++) {
    if (get(loop.done) == loop.awaited) return;
    PAUSE();
  }
  timespec from, now;
  clock_gettime(CLOCK_MONOTONIC, &from);
  while (get(loop.done) != loop.awaited) sched_yield();
  clock_gettime(CLOCK_MONOTONIC, &now);
  if ((uint64_t)(now.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)(now.tv_nsec - from.tv_nsec) > LATE) {
    alone = penalty = penalty < LONGEST ? 2 * penalty + 1 : LONGEST;
  } else if (penalty) penalty--;
}

// Sleep, unless a loop has been offered after the `seen` ones.
inline void Pool::sleep(uint32_t seen) {
  const uint32_t heard = __atomic_load_n(&bell, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&offered, __ATOMIC_SEQ_CST) == seen)
    syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, nullptr, nullptr, 0);
  __atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
}

inline void Pool::help(int thread) {
  for (uint32_t seen = 0, turn = 0;;) {
    const uint32_t now = get(offered);
    if (seen == now) {
      if (++turn < SPINS) PAUSE();
      else if (turn < SPINS + OFFERS) sched_yield();
      else sleep(seen), turn = 0;
      continue;
    }
    if (now - seen > ROOM) seen = now - ROOM;  // the main thread has stepped the earlier ones
    seen++;
    Loop& loop = *__atomic_load_n(seen == now ? &last : &loops[(seen - 1) % ROOM], __ATOMIC_RELAXED);
    while (loop.take(thread, 2)) {}
    turn = 0;
  }
}

inline void* Pool::helper(void* thread) {
  pool.help((int)(intptr_t)thread);
  return nullptr;
}

// Start the helpers. They end with the process, and leave signals to the main thread.
inline void Pool::start() {
  const char* wanted = getenv("THREADS");
  threads = wanted ? atoi(wanted) : 1;
  threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int n = 1; n < threads; n++) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, helper, (void*)(intptr_t)n)) break;
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace lanes
