// The stock program of several sections: runs each of them as often as it is named.
//
// Arguments: how many runs there are; for each the semaphores to clear before it (see semaphores_clear in core.h) and
// the place of its section among the arguments; the sections (see run_section in core.h).
// Returns 0, or 0x40000000 | cause at the first error.

#include "core.h"

int main(void) {
    typedef struct {
        uint32_t semaphores, section;
    } run_t;
    const run_t *run = (const run_t *)&image_arguments[1], *end = run + image_arguments[0];
    for (; run < end; run++) {
        semaphores_clear(run->semaphores);
        run_section(&image_arguments[run->section]);
    }
    return 0;
}
