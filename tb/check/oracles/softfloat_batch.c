/* Berkeley SoftFloat over arrays: bit patterns in, bit patterns out, rounding to nearest even (SoftFloat's default). */

#include <stddef.h>
#include <stdint.h>

#include "platform.h"
#include "softfloat.h"

/* Functions of one, two and three arrays of n; `result` is the i-th of `out`. */
#define BATCH1(name, in_type, out_type, result) \
    void batch_##name(size_t n, const in_type *a, out_type *out) \
    { \
        for (size_t i = 0; i < n; i++) out[i] = (result); \
    }
#define BATCH2(name, out_type, result) \
    void batch_##name(size_t n, const uint32_t *a, const uint32_t *b, out_type *out) \
    { \
        for (size_t i = 0; i < n; i++) out[i] = (result); \
    }
#define BATCH3(name, result) \
    void batch_##name(size_t n, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *out) \
    { \
        for (size_t i = 0; i < n; i++) out[i] = (result); \
    }
#define F32(array) ((float32_t){array[i]})

BATCH3(f32_mulAdd, f32_mulAdd(F32(a), F32(b), F32(c)).v)
BATCH2(f32_add, uint32_t, f32_add(F32(a), F32(b)).v)
BATCH2(f32_mul, uint32_t, f32_mul(F32(a), F32(b)).v)
BATCH2(f32_div, uint32_t, f32_div(F32(a), F32(b)).v)
BATCH2(f32_eq, uint8_t, f32_eq(F32(a), F32(b)))
BATCH2(f32_lt, uint8_t, f32_lt(F32(a), F32(b)))
BATCH2(f32_le, uint8_t, f32_le(F32(a), F32(b)))
BATCH1(f32_to_f16, uint32_t, uint16_t, f32_to_f16(F32(a)).v)
BATCH1(f16_to_f32, uint16_t, uint32_t, f16_to_f32((float16_t){a[i]}).v)

/* invalid[i] is 1 where SoftFloat raises the invalid flag: NaN, infinity, or out of range. */
void batch_f32_to_i32(size_t n, const uint32_t *value, int32_t *out, uint8_t *invalid)
{
    for (size_t i = 0; i < n; i++) {
        softfloat_exceptionFlags = 0;
        out[i] = (int32_t)f32_to_i32(F32(value), softfloat_round_near_even, false);
        invalid[i] = (softfloat_exceptionFlags & softfloat_flag_invalid) != 0;
    }
}
