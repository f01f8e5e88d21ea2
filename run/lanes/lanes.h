// 32- and 64-bit words, scalar or as a vector of WIDTH, with the operations used by generated code.
// Comparisons and tests return 0 or 1 as 32 bits.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef uint32_t V32 __attribute__((vector_size(4 * WIDTH)));
typedef int32_t S32 __attribute__((vector_size(4 * WIDTH)));
typedef uint64_t V64 __attribute__((vector_size(8 * WIDTH)));
typedef int64_t S64 __attribute__((vector_size(8 * WIDTH)));

#define INLINE static inline __attribute__((always_inline))

// The first of the numbers `first`, `first + stride`, ... that is not below `low`.
INLINE int from(int low, int first, int stride) {
  return low <= first ? first : first + (low - first + stride - 1) / stride * stride;
}

INLINE V32 K32(uint32_t x) { return x - (V32){}; }
INLINE V64 K64(uint64_t x) { return x - (V64){}; }
INLINE V32 load(const uint32_t* p) { V32 v; memcpy(&v, p, sizeof v); return v; }
INLINE V64 load(const uint64_t* p) { V64 v; memcpy(&v, p, sizeof v); return v; }
INLINE void store(uint32_t* p, V32 v) { memcpy(p, &v, sizeof v); }
INLINE void store(uint64_t* p, V64 v) { memcpy(p, &v, sizeof v); }

INLINE uint64_t wide(uint32_t x) { return x; }
INLINE uint32_t narrow(uint64_t x) { return (uint32_t)x; }
INLINE V64 wide(V32 x) { return __builtin_convertvector(x, V64); }
INLINE V32 narrow(V64 x) { return __builtin_convertvector(x, V32); }
INLINE V32 bit(S32 x) { return (V32)x & 1u; }
INLINE V32 bit(S64 x) { return narrow((V64)x) & 1u; }

#define COMPARE(name, operator)                                                                     \
  INLINE uint32_t name(uint32_t a, uint32_t b) { return a operator b; }                             \
  INLINE uint32_t name(uint64_t a, uint64_t b) { return a operator b; }                             \
  INLINE V32 name(V32 a, V32 b) { return bit((S32)(a operator b)); }                                \
  INLINE V32 name(V64 a, V64 b) { return bit((S64)(a operator b)); }                                \
  INLINE uint32_t signed_##name(uint32_t a, uint32_t b) { return (int32_t)a operator(int32_t) b; }  \
  INLINE uint32_t signed_##name(uint64_t a, uint64_t b) { return (int64_t)a operator(int64_t) b; }  \
  INLINE V32 signed_##name(V32 a, V32 b) { return bit((S32)((S32)a operator(S32) b)); }             \
  INLINE V32 signed_##name(V64 a, V64 b) { return bit((S64)((S64)a operator(S64) b)); }
COMPARE(eq, ==)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

INLINE uint32_t any(uint32_t x) { return x != 0; }
INLINE uint32_t any(uint64_t x) { return x != 0; }
INLINE V32 any(V32 x) { return bit((S32)(x != 0u)); }
INLINE V32 any(V64 x) { return bit((S64)(x != 0ull)); }
INLINE uint32_t parity(uint32_t x) { return __builtin_parity(x); }
INLINE uint32_t parity(uint64_t x) { return __builtin_parityll(x); }
INLINE V32 parity(V32 x) { x ^= x >> 16; x ^= x >> 8; x ^= x >> 4; x ^= x >> 2; x ^= x >> 1; return x & 1u; }
INLINE V32 parity(V64 x) { return parity(narrow(x ^ x >> 32)); }

INLINE V32 choose(V32 s, V32 high, V32 low) { return s != 0u ? high : low; }
INLINE V64 choose(V32 s, V64 high, V64 low) { return wide(s) != 0ull ? high : low; }

// Sign extension: n is the number of bits above the value.
INLINE uint32_t signed_32(uint32_t x, int n) { return (uint32_t)((int32_t)(x << n) >> n); }
INLINE uint64_t signed_64(uint64_t x, int n) { return (uint64_t)((int64_t)(x << n) >> n); }
INLINE V32 signed_32(V32 x, int n) { return (V32)((S32)(x << n) >> n); }
INLINE V64 signed_64(V64 x, int n) { return (V64)((S64)(x << n) >> n); }

#define SHIFTS(T, ST, BITS, CLIPPED, CHOOSE)                                                                   \
  INLINE T left_within(T x, T n) { return x << n; }                                                            \
  INLINE T right_within(T x, T n) { return x >> n; }                                                           \
  INLINE T signed_right_within(T x, T n) { return (T)((ST)x >> (ST)n); }                                       \
  INLINE T left(T x, T n) { return CHOOSE(ge(n, CLIPPED(BITS)), CLIPPED(0), x << (n & CLIPPED(BITS - 1))); }   \
  INLINE T right(T x, T n) { return CHOOSE(ge(n, CLIPPED(BITS)), CLIPPED(0), x >> (n & CLIPPED(BITS - 1))); }  \
  INLINE T signed_right(T x, T n) {                                                                            \
    return (T)((ST)x >> (ST)CHOOSE(ge(n, CLIPPED(BITS)), CLIPPED(BITS - 1), n));                               \
  }                                                                                                            \
  INLINE T shift_either(T x, T n) {                                                                            \
    return CHOOSE(signed_lt(n, CLIPPED(0)), left(x, (T)-n), right(x, n));                                      \
  }
#define SCALAR_CHOOSE(s, high, low) ((s) ? (high) : (low))
#define SCALAR_32(x) ((uint32_t)(x))
#define SCALAR_64(x) ((uint64_t)(x))
SHIFTS(uint32_t, int32_t, 32, SCALAR_32, SCALAR_CHOOSE)
SHIFTS(uint64_t, int64_t, 64, SCALAR_64, SCALAR_CHOOSE)
SHIFTS(V32, S32, 32, K32, choose)
SHIFTS(V64, S64, 64, K64, choose)

// Bit fields of an array of words.
INLINE uint32_t bits32(const uint32_t* p, uint32_t first, uint32_t length) {
  const uint32_t at = first >> 5, shift = first & 31;
  uint64_t x = p[at];
  if (shift + length > 32) x |= (uint64_t)p[at + 1] << 32;
  return (uint32_t)(x >> shift) & (uint32_t)(0xffffffffu >> (32 - length));
}
INLINE uint64_t bits64(const uint32_t* p, uint32_t first, uint32_t length) {
  if (length <= 32) return bits32(p, first, length);
  return bits32(p, first, 32) | (uint64_t)bits32(p, first + 32, length - 32) << 32;
}
// Writes bits that are zero before.
INLINE void put(uint32_t* p, uint32_t first, uint32_t length, uint64_t x) {
  const uint32_t at = first >> 5, shift = first & 31;
  p[at] |= (uint32_t)(x << shift);
  if (shift + length > 32) p[at + 1] |= (uint32_t)(x >> (32 - shift));
  if (shift + length > 64) p[at + 2] |= (uint32_t)(x >> (64 - shift));
}

// Zeros, in huge pages if they are many: a step touches all of a block's arrays, more pages than the processor caches.
static inline void* zeroed(size_t size) {
  const uintptr_t page = size < 1 << 19 ? 128 : 1 << 21, whole = (size + page - 1) & ~(page - 1);
  void* aligned = (void*)(((uintptr_t)calloc(1, whole + page - 1) + page - 1) & ~(page - 1));
#ifdef MADV_HUGEPAGE
  if (page > 128) madvise(aligned, whole, MADV_HUGEPAGE);  // of a part of a page it would have no effect
#endif
  return aligned;
}

template <class T> INLINE void exchange(T& a, T& b) { T c = a; a = b; b = c; }

// Memories of all instances: word a of instance j is p[a * stride + j].
INLINE V32 gather(const uint32_t* p, V32 address, uint32_t stride, uint32_t each, uint32_t size) {
  V32 x;
  for (int j = 0; j < WIDTH; j++) x[j] = address[j] < size ? p[address[j] * stride + j * each] : 0;
  return x;
}
INLINE void scatter(uint32_t* p, V32 address, V32 data, V32 mask, uint32_t stride, uint32_t size) {
  for (int j = 0; j < WIDTH; j++)
    if (mask[j] && address[j] < size) {
      uint32_t* at = p + address[j] * stride + j;
      *at ^= (*at ^ data[j]) & mask[j];
    }
}
INLINE bool some(V32 x) { return __builtin_reduce_or(x) != 0; }
INLINE V32 merge(V32 old, V32 data, V32 mask) { return old ^ ((old ^ data) & mask); }
