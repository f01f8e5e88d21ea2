// What the tests of the core have the controller do: image_arguments[0] says which of these; [1] is the watchdog's
// limit, and then come sections (see run_section in core.h), one behind the other, and 0.

#include "core.h"

// The first block, or the only one; behind that stand words that a case may need.
#define BLOCK (&image_arguments[3])

static uint32_t run(void) {
    const uint32_t *section = &image_arguments[2];
    while (*section) section = run_section(section);
    return 0;
}

// Starts the block of which these are queue, address and count.
static void start(const uint32_t *block) {
    queue_start(block[0], (uint64_t)block[2] << 32 | block[1], block[3]);
}

static void print(const char *name, uint32_t number) {
    puts(name);
    print_hexadecimal(number);
    putchar('\n');
}

// Sleeps until an error interrupts; the handler says what it is and ends the program with a code of its own.
static uint32_t catch_error(void) {
    REGISTER(INTERRUPT_ENABLE) = INTERRUPT_ERROR;
    interrupts_select(MIE_EXTERNAL);
    interrupts_enable();
    const uint32_t *block = BLOCK;
    for (uint32_t i = 0; i < image_arguments[2]; i++, block += 4) start(block);
    for (;;) wait_for_interrupt();
}

static uint32_t host(void) {
    REGISTER(INTERRUPT_ENABLE) = INTERRUPT_HOST;
    interrupts_select(MIE_EXTERNAL);
    wait_for_interrupt();
    puts("host");
    REGISTER(INTERRUPT_PENDING) = INTERRUPT_HOST;
    return REGISTER(INTERRUPT_PENDING);
}

static uint32_t twice(void) { return host() | host(); }

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
    start(BLOCK);
    wait_for_interrupt();
    return semaphore_read(7) << 8 | REGISTER(INTERRUPT_PENDING);
}

static uint32_t poll(void) {
    semaphore_wait(9, 1);
    return 0;
}

// Rings a block many times, whose first record waits for semaphore 9, which nobody counts up; then once more.
static uint32_t doorbells(void) {
    for (uint32_t i = 0; i < 20; i++) start(BLOCK);
    return error_cause() << 8 | queue_count(*BLOCK);
}

// Adds to a semaphore that is full.
static uint32_t refused(void) {
    semaphore_set(1, 0xffff);
    semaphore_add(1, 1);
    return 0;
}

// Lets a waiting block go on, and before that counts up another semaphore so often that the watchdog keeps quiet.
static uint32_t rescue(void) {
    start(BLOCK);
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t start = instructions(); instructions() - start < 1000;) {}
        semaphore_set(8, round);
    }
    semaphore_set(9, 1);
    while (!queue_idle(*BLOCK)) {}
    return error_cause();
}

// Sleeps for some cycles, starts the block, and polls until it has retired.
static uint32_t late(void) {
    timer_set(timer_now() + BLOCK[5]);
    interrupts_select(MIE_TIMER);
    wait_for_interrupt();
    start(BLOCK);
    while (!queue_idle(*BLOCK) && !error_cause()) {}
    return error_cause();
}

// Starts the block and sleeps until semaphore 7 has been counted up, or an error has been reported; returns the cycles.
static uint32_t asleep(void) {
    REGISTER(WATCH_SEMAPHORE) = 7;
    REGISTER(WATCH_VALUE) = 1;
    REGISTER(INTERRUPT_ENABLE) = INTERRUPT_SEMAPHORE | INTERRUPT_ERROR;
    interrupts_select(MIE_EXTERNAL);
    start(BLOCK);
    wait_for_interrupt();
    return (uint32_t)timer_now();
}

static uint32_t number(void) { return core_count() << 8 | core_number(); }

// Accesses that must trap, each of which the handler prints and skips.
static uint32_t traps(void) {
    static const uint32_t words[] = {
        0x00000000, 0x08000000, 0x30000000, 0x50000000, 0x80010000, 0xfffffffc,
        REGISTERS + 0x3ffc, QUEUES + 5 * QUEUE_STRIDE + QUEUE_PLACES, QUEUES + QUEUE_START, EXIT, CONSOLE,
        SBUF_WINDOW + (4 << SBUF_PITCH_BITS), SBUF_WINDOW + (192 << 10), PSUM_WINDOW + (4 << PSUM_PITCH_BITS),
        SBUF_WINDOW + 2, ERROR_CAUSE + 1,
    };
    static const uint32_t stores[] = {
        0x00000000, 0x80010000, REGISTERS + 0x3ffc, QUEUES + 5 * QUEUE_STRIDE + QUEUE_START, QUEUES + QUEUE_PLACES,
        ERROR_CAUSE, QUEUES + QUEUE_LOW, CONSOLE, SEMAPHORES + 4, SEMAPHORE_ADD + 4 * 256,
        SBUF_WINDOW + (4 << SBUF_PITCH_BITS), PSUM_WINDOW + 1,
    };
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) (void)REGISTER(words[i]);
    for (uint32_t i = 0; i < sizeof stores / sizeof *stores; i++) REGISTER(stores[i]) = 0x12345679;
    (void)*(volatile uint8_t *)SEMAPHORES;
    *(volatile uint8_t *)SBUF_WINDOW = 1;
    *(volatile uint16_t *)(PSUM_WINDOW + 2) = 1;
    return semaphore_read(1);
}

uint32_t trap_handler(uint32_t cause, uint32_t pc, uint32_t value) {
    if (cause == CAUSE_EXTERNAL) {
        print("cause ", REGISTER(ERROR_CAUSE));
        print("queue ", REGISTER(ERROR_QUEUE));
        print("record ", REGISTER(ERROR_LOW));
        print("detail ", REGISTER(ERROR_DETAIL));
        exit(77);
    }
    print_unsigned(cause);
    print(" ", value);
    return pc + 4;
}

int main(void) {
    static uint32_t (*const cases[])(void) = {run, catch_error, traps, host, twice, windows, timer, semaphore, poll,
                                              doorbells, refused, rescue, late, asleep, number};
    REGISTER(WATCHDOG_LIMIT) = image_arguments[1];
    return (int)cases[image_arguments[0]]();
}
