// The stock program: rings the doorbells of the blocks in its arguments, section by section.
//
// Arguments: the sections (see run_section in core.h), then 0.
// Returns 0, or 0x40000000 | cause at the first error.

#include "core.h"

int main(void) {
    const uint32_t *section = image_arguments;
    while (*section) section = run_section(section);
    return 0;
}
