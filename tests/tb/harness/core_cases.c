// What the tests of the core have the controller do: image_arguments[0] says which of these; [1] is the watchdog's
// limit, and then come the sections that kernels/control/run.c would get.

#include "core.h"

static uint32_t run(void) {
    const uint32_t *section = &image_arguments[2];
    while (*section) section = run_section(section);
    return 0;
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
    const uint32_t *block = &image_arguments[3];
    for (uint32_t i = 0; i < image_arguments[2]; i++, block += 4)
        queue_start(block[0], (uint64_t)block[2] << 32 | block[1], block[3]);
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
    static uint32_t (*const cases[])(void) = {run, catch_error, traps, host};
    REGISTER(WATCHDOG_LIMIT) = image_arguments[1];
    return (int)cases[image_arguments[0]]();
}
