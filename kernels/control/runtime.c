// What control programs share: starting blocks, text on the console, and the functions that a C compiler takes for
// granted.

#include <stddef.h>

#include "core.h"

#define ERROR_CODE 0x40000000u

static void stop_at_error(void) {
    uint32_t cause = error_cause();
    if (cause) exit(ERROR_CODE | cause);
}

const uint32_t *run_section(const uint32_t *words) {
    typedef struct {
        uint32_t queue, low, high, count;
    } block_t;
    const block_t *first = (const block_t *)&words[1], *end = first + words[0];
    // A doorbell without a place waits for one; after an error all are taken.
    for (const block_t *block = first; block < end; block++)
        queue_start(block->queue, (uint64_t)block->high << 32 | block->low, block->count);
    for (const block_t *block = first; block < end; block++)
        while (!queue_idle(block->queue)) stop_at_error();
    stop_at_error();
    return (const uint32_t *)end;
}

void puts(const char *text) {
    while (*text) putchar(*text++);
}

void print_unsigned(uint32_t number) {
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count) putchar(digits[--count]);
}

void print_hexadecimal(uint32_t number) {
    for (int shift = 28; shift >= 0; shift -= 4) putchar("0123456789abcdef"[number >> shift & 15]);
}

void *memset(void *to, int byte, size_t count) {
    uint8_t *bytes = to;
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)byte;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
    uint8_t *bytes = to;
    const uint8_t *source = from;
    for (size_t i = 0; i < count; i++) bytes[i] = source[i];
    return to;
}

void *memmove(void *to, const void *from, size_t count) {
    uint8_t *bytes = to;
    const uint8_t *source = from;
    if (bytes < source)
        for (size_t i = 0; i < count; i++) bytes[i] = source[i];
    else
        for (size_t i = count; i > 0; i--) bytes[i - 1] = source[i - 1];
    return to;
}
