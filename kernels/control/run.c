// The stock program of one section: runs it. The fewer words it has, the earlier the core has booted.
//
// Arguments: the section (see run_section in core.h).
// Returns 0, or 0x40000000 | cause at the first error.

#include "core.h"

int main(void) {
    run_section(image_arguments);
    return 0;
}
