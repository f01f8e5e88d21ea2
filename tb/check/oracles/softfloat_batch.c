/* Berkeley SoftFloat over arrays: bit patterns in, bit patterns out, rounding to nearest even (SoftFloat's default). */

#include <stddef.h>
#include <stdint.h>

#include "platform.h"
#include "softfloat.h"

void batch_f32_mulAdd(size_t n, const uint32_t *x, const uint32_t *w, const uint32_t *acc, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_mulAdd((float32_t){x[i]}, (float32_t){w[i]}, (float32_t){acc[i]}).v;
    }
}

void batch_f32_add(size_t n, const uint32_t *a, const uint32_t *b, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_add((float32_t){a[i]}, (float32_t){b[i]}).v;
    }
}

void batch_f32_mul(size_t n, const uint32_t *a, const uint32_t *b, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_mul((float32_t){a[i]}, (float32_t){b[i]}).v;
    }
}

void batch_f32_div(size_t n, const uint32_t *a, const uint32_t *b, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_div((float32_t){a[i]}, (float32_t){b[i]}).v;
    }
}

void batch_f32_eq(size_t n, const uint32_t *a, const uint32_t *b, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_eq((float32_t){a[i]}, (float32_t){b[i]});
    }
}

void batch_f32_lt(size_t n, const uint32_t *a, const uint32_t *b, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_lt((float32_t){a[i]}, (float32_t){b[i]});
    }
}

void batch_f32_le(size_t n, const uint32_t *a, const uint32_t *b, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f32_le((float32_t){a[i]}, (float32_t){b[i]});
    }
}

void batch_f32_to_f16(size_t n, const uint32_t *value, uint16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint16_t)f32_to_f16((float32_t){value[i]}).v;
    }
}

void batch_f16_to_f32(size_t n, const uint16_t *value, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = f16_to_f32((float16_t){value[i]}).v;
    }
}

/* invalid[i] is 1 where SoftFloat raises the invalid flag: NaN, infinity, or out of range. */
void batch_f32_to_i32(size_t n, const uint32_t *value, int32_t *out, uint8_t *invalid)
{
    for (size_t i = 0; i < n; i++) {
        softfloat_exceptionFlags = 0;
        out[i] = (int32_t)f32_to_i32((float32_t){value[i]}, softfloat_round_near_even, false);
        invalid[i] = (softfloat_exceptionFlags & softfloat_flag_invalid) != 0;
    }
}
