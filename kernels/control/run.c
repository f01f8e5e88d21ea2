// The stock program: runs sections, each of them as often as it is named.
//
// Arguments: how many runs there are, and for each the place of its section among the arguments; the sections (see
// run_section in core.h).
// Returns 0, or 0x40000000 | cause at the first error.

#include "core.h"

int main(void) {
    const uint32_t *runs = &image_arguments[1], *end = runs + image_arguments[0];
    while (runs < end) run_section(&image_arguments[*runs++]);
    return 0;
}
