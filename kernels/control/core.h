// What a control program needs: the core's registers as functions, the console, the timer, interrupts, the exit.
//
// memory_map.h, made from spec/memory_map.py, has the addresses; docs/controller.md says what the registers do.

#pragma once

#include <stdint.h>

#include "memory_map.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

// Argument words that stand behind the program in its image (see core.ld).
extern const uint32_t image_arguments[];

// ---- Queues: 0 tensor, 1 vector, 2 scalar, 3 and on the DMA engines; of a core that is not alone, behind them the
// collective engine

static inline volatile uint32_t *queue_register(uint32_t queue, uint32_t offset) {
    return &REGISTER(QUEUES + queue * QUEUE_STRIDE + offset);
}

// Rings a queue's doorbell: it takes `count` records (1 to 65535) from HBM. Waits while the queue has no place.
static inline void queue_start(uint32_t queue, uint64_t address, uint32_t count) {
    *queue_register(queue, QUEUE_LOW) = (uint32_t)address;
    *queue_register(queue, QUEUE_HIGH) = (uint32_t)(address >> 32);
    *queue_register(queue, QUEUE_START) = count;
}

// Blocks that can be rung now without waiting.
static inline uint32_t queue_places(uint32_t queue) { return *queue_register(queue, QUEUE_PLACES); }

// Records that have retired, and that were rung, since reset; both modulo 2**32.
static inline uint32_t queue_retired(uint32_t queue) { return *queue_register(queue, QUEUE_RETIRED); }
static inline uint32_t queue_count(uint32_t queue) { return *queue_register(queue, QUEUE_COUNT); }

// Whether everything that was rung has retired.
static inline int queue_idle(uint32_t queue) { return queue_retired(queue) == queue_count(queue); }

// A counter of a queue, lower 32 bits; numbers are COUNTER_RECORDS and so on.
static inline uint32_t queue_counter(uint32_t queue, uint32_t number) {
    return REGISTER(COUNTERS + queue * COUNTER_STRIDE + 4 * number);
}

// ---- Semaphores: 256 of 16 bits

static inline uint32_t semaphore_read(uint32_t semaphore) { return REGISTER(SEMAPHORES + 4 * semaphore); }
static inline void semaphore_set(uint32_t semaphore, uint32_t value) { REGISTER(SEMAPHORES + 4 * semaphore) = value; }
static inline void semaphore_add(uint32_t semaphore, uint32_t value) {
    REGISTER(SEMAPHORE_ADD + 4 * semaphore) = value;
}
static inline void semaphore_subtract(uint32_t semaphore, uint32_t value) {
    REGISTER(SEMAPHORE_SUBTRACT + 4 * semaphore) = value;
}

// Clears semaphores: `range` is the first one, and above 16 bits the one behind the last.
static inline void semaphores_clear(uint32_t range) {
    for (uint32_t semaphore = range & 0xffff; semaphore < range >> 16; semaphore++) semaphore_set(semaphore, 0);
}

// Waits until a semaphore is at least `value`.
static inline void semaphore_wait(uint32_t semaphore, uint32_t value) {
    while (semaphore_read(semaphore) < value) {}
}

// ---- Windows: words of the on-chip memories; `byte` is a multiple of 4

static inline uint32_t sbuf_read(uint32_t partition, uint32_t byte) {
    return REGISTER(SBUF_WINDOW + (partition << SBUF_PITCH_BITS) + byte);
}
static inline void sbuf_write(uint32_t partition, uint32_t byte, uint32_t word) {
    REGISTER(SBUF_WINDOW + (partition << SBUF_PITCH_BITS) + byte) = word;
}
static inline uint32_t psum_read(uint32_t partition, uint32_t byte) {
    return REGISTER(PSUM_WINDOW + (partition << PSUM_PITCH_BITS) + byte);
}
static inline void psum_write(uint32_t partition, uint32_t byte, uint32_t word) {
    REGISTER(PSUM_WINDOW + (partition << PSUM_PITCH_BITS) + byte) = word;
}

// ---- The first error since reset; 0 if there was none

static inline uint32_t error_cause(void) { return REGISTER(ERROR_CAUSE); }

// ---- Which core of its instance this is, and how many there are: 0 and 1 of one that is alone

static inline uint32_t core_number(void) { return REGISTER(CORE_NUMBER); }
static inline uint32_t core_count(void) { return REGISTER(CORE_COUNT); }

// ---- Blocks of records

// Rings the doorbells of a section's blocks, in order, and waits until all of them have retired. `words` are the number
// of blocks, then for each its queue, HBM address (lower half, upper half) and record count. Returns what stands behind
// them. At the first error it ends the program with the code 0x40000000 | cause. The semaphores that a section counts on
// must be zero; so they are cleared before another one that counts on the same, or before it is run again.
const uint32_t *run_section(const uint32_t *words);

// ---- Console and exit

static inline void putchar(char character) { REGISTER(CONSOLE) = (uint8_t)character; }

void puts(const char *text);           // without a newline of its own
void print_unsigned(uint32_t number);  // decimal
void print_hexadecimal(uint32_t number);

// Ends the program; the host sees the code.
_Noreturn void exit(uint32_t code);

// ---- Control and status registers of the hart

#define csr_read(name)                                              \
    ({                                                              \
        uint32_t value_;                                            \
        __asm__ volatile("csrr %0, " #name : "=r"(value_)::"memory"); \
        value_;                                                     \
    })
#define csr_write(name, value) __asm__ volatile("csrw " #name ", %0" ::"r"((uint32_t)(value)) : "memory")
#define csr_set(name, bits) __asm__ volatile("csrs " #name ", %0" ::"r"((uint32_t)(bits)) : "memory")
#define csr_clear(name, bits) __asm__ volatile("csrc " #name ", %0" ::"r"((uint32_t)(bits)) : "memory")

// Cycles and retired instructions since reset, lower 32 bits: differences are exact up to 2**32.
static inline uint32_t cycles(void) { return csr_read(mcycle); }
static inline uint32_t instructions(void) { return csr_read(minstret); }

// ---- Timer and interrupts

#define MIE_TIMER (1u << 7)
#define MIE_EXTERNAL (1u << 11)
#define CAUSE_TIMER 0x80000007u
#define CAUSE_EXTERNAL 0x8000000bu

// Called for every trap with mcause, mepc and mtval; returns the pc to go on at. The one that a program does not define
// itself ends the program with the code 0x80000000 | cause.
uint32_t trap_handler(uint32_t cause, uint32_t pc, uint32_t value);

// Cycles since reset.
static inline uint64_t timer_now(void) {
    uint32_t high, low;
    do {
        high = REGISTER(TIMER_NOW + 4);
        low = REGISTER(TIMER_NOW);
    } while (high != REGISTER(TIMER_NOW + 4));
    return (uint64_t)high << 32 | low;
}

// Sets when the timer interrupt becomes pending; never early on the way.
static inline void timer_set(uint64_t time) {
    REGISTER(TIMER_COMPARE + 4) = 0xffffffffu;
    REGISTER(TIMER_COMPARE) = (uint32_t)time;
    REGISTER(TIMER_COMPARE + 4) = (uint32_t)(time >> 32);
}

// Which interrupts may be taken (MIE_TIMER, MIE_EXTERNAL), and whether any.
static inline void interrupts_select(uint32_t sources) { csr_write(mie, sources); }
static inline void interrupts_enable(void) { csr_set(mstatus, 1u << 3); }
static inline void interrupts_disable(void) { csr_clear(mstatus, 1u << 3); }

// Sleeps until a selected interrupt is pending.
static inline void wait_for_interrupt(void) { __asm__ volatile("wfi" ::: "memory"); }
