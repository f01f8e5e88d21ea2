// The stock program, with a watchdog that does not wait as long.

#include "core.h"

int main(void) {
    REGISTER(WATCHDOG_LIMIT) = 3000;
    const uint32_t *section = image_arguments;
    while (*section) section = run_section(section);
    return 0;
}
