// What the tests of the golden core have the controller do: image_arguments[0] says which of these.

#include "core.h"

static uint32_t hello(void) {
    puts("hello, ");
    print_unsigned(1234);
    return 42;
}

static uint32_t windows(void) {
    sbuf_write(1, 8, sbuf_read(3, 4) + 1);
    psum_write(2, 0, psum_read(0, 16380) + 2);
    return 0;
}

// Sleeps for 1000 ticks of the timer; returns how many more it were.
static uint32_t timer(void) {
    uint64_t wanted = timer_now() + 1000;
    timer_set(wanted);
    interrupts_select(MIE_TIMER);
    wait_for_interrupt();
    return (uint32_t)(timer_now() - wanted);
}

// Sleeps until semaphore 7 has been counted up to 2 by the block of arguments.
static uint32_t semaphore(void) {
    REGISTER(WATCH_SEMAPHORE) = 7;
    REGISTER(WATCH_VALUE) = 2;
    REGISTER(INTERRUPT_ENABLE) = INTERRUPT_SEMAPHORE;
    interrupts_select(MIE_EXTERNAL);
    queue_start(image_arguments[1], image_arguments[2], image_arguments[3]);
    wait_for_interrupt();
    return semaphore_read(7) << 8 | REGISTER(INTERRUPT_PENDING);
}

// Sleeps until the host asks for attention, twice.
static uint32_t host(void) {
    REGISTER(INTERRUPT_ENABLE) = INTERRUPT_HOST;
    interrupts_select(MIE_EXTERNAL);
    for (int i = 0; i < 2; i++) {
        wait_for_interrupt();
        puts("!");
        REGISTER(INTERRUPT_PENDING) = INTERRUPT_HOST;
    }
    return REGISTER(INTERRUPT_PENDING);
}

static uint32_t poll(void) {
    semaphore_wait(9, 1);
    return 0;
}

// Rings a block many times, whose first record waits for semaphore 9, which nobody counts up; then once more.
static uint32_t doorbells(void) {
    REGISTER(WATCHDOG_LIMIT) = 500;
    for (uint32_t i = 0; i < 20; i++) queue_start(image_arguments[1], image_arguments[2], image_arguments[3]);
    return error_cause() << 8 | queue_count(image_arguments[1]);
}

// Adds to a semaphore that is full.
static uint32_t refused(void) {
    semaphore_set(1, 0xffff);
    semaphore_add(1, 1);
    return 0;
}

// Lets a waiting block go on, and before that counts up another semaphore so often that the watchdog keeps quiet.
static uint32_t rescue(void) {
    REGISTER(WATCHDOG_LIMIT) = 2000;
    queue_start(image_arguments[1], image_arguments[2], image_arguments[3]);
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t start = instructions(); instructions() - start < 1000;) {}
        semaphore_set(8, round);
    }
    semaphore_set(9, 1);
    while (!queue_idle(image_arguments[1])) {}
    return error_cause();
}

int main(void) {
    uint32_t (*const cases[])(void) = {hello, windows, timer, semaphore, host, poll, doorbells, refused, rescue};
    return cases[image_arguments[0]]();
}
