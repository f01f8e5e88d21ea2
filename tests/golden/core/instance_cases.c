// What the tests of golden instances have a core do: image_arguments are the case, cycles, a queue and a block of it.

#include "core.h"

#define QUEUE image_arguments[2]
#define BLOCK image_arguments[3]
#define RECORDS image_arguments[4]

// Sleeps for some cycles, starts the block, and polls until it has retired.
static uint32_t late(void) {
    timer_set(timer_now() + image_arguments[1]);
    interrupts_select(MIE_TIMER);
    wait_for_interrupt();
    queue_start(QUEUE, BLOCK, RECORDS);
    while (!queue_idle(QUEUE) && !error_cause()) {}
    return error_cause();
}

// Starts the block and sleeps until semaphore 7 has been counted up, or an error has been reported; returns the cycles.
static uint32_t asleep(void) {
    REGISTER(WATCH_SEMAPHORE) = 7;
    REGISTER(WATCH_VALUE) = 1;
    REGISTER(INTERRUPT_ENABLE) = INTERRUPT_SEMAPHORE | INTERRUPT_ERROR;
    interrupts_select(MIE_EXTERNAL);
    queue_start(QUEUE, BLOCK, RECORDS);
    wait_for_interrupt();
    return (uint32_t)timer_now();
}

static uint32_t number(void) { return core_count() << 8 | core_number(); }

int main(void) {
    static uint32_t (*const cases[])(void) = {late, asleep, number};
    REGISTER(WATCHDOG_LIMIT) = 10000;
    exit(cases[image_arguments[0]]());
}
