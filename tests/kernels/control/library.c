// The runtime: .bss is zero, .data is there, arguments, text on the console, what the compiler takes for granted.

#include <stddef.h>

#include "check.h"

static uint32_t zeros[100];
static uint32_t numbers[3] = {1, 2, 3};

void *memset(void *, int, size_t);
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);

int main(void) {
    for (int i = 0; i < 100; i++) CHECK(zeros[i] == 0);
    CHECK(numbers[0] == 1 && numbers[2] == 3);
    CHECK(((uint32_t)image_arguments & 15) == 0);
    CHECK(image_arguments[0] == 0xfeedf00d && image_arguments[1] == 42);

    uint8_t bytes[8];
    memset(bytes, 7, 8);
    CHECK(bytes[0] == 7 && bytes[7] == 7);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)i;
    memmove(bytes + 2, bytes, 6);
    CHECK(bytes[2] == 0 && bytes[7] == 5);
    memmove(bytes, bytes + 2, 6);
    CHECK(bytes[0] == 0 && bytes[5] == 5);
    memcpy(bytes, numbers, 4);
    CHECK(bytes[0] == 1 && bytes[1] == 0);

    puts("hello ");
    print_unsigned(0);
    putchar(' ');
    print_unsigned(4294967295u);
    putchar(' ');
    print_hexadecimal(0x00c0ffee);
    putchar('\n');
    return (int)image_arguments[1];
}
