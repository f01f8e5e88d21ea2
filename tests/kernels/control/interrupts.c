// Interrupts: when they are taken, which goes first, where they lead, and what ends a wfi. A 1 in INTERRUPT_PENDING asks
// for the external interrupt here.

#include "check.h"

static volatile uint32_t order[4];

// Answers the interrupt and notes it; an exception is skipped.
uint32_t trap_handler(uint32_t cause, uint32_t pc, uint32_t value) {
    if (trap_count < 4) order[trap_count] = cause;
    note_trap(cause, pc, value);
    if (cause == CAUSE_TIMER) timer_set(~0ull);
    if (cause == CAUSE_EXTERNAL) REGISTER(INTERRUPT_PENDING) = 0;
    return cause >> 31 ? pc : pc + 4;
}

static void spin(void) {
    for (int i = 0; i < 20; i++) __asm__ volatile("nop" ::: "memory");
}

static void timer(void) {
    // Pending is not taken: first disabled in mie, then in mstatus.
    timer_set(0);
    spin();
    CHECK(trap_count == 0 && csr_read(mip) == MIE_TIMER);
    interrupts_select(MIE_TIMER);
    spin();
    CHECK(trap_count == 0);
    interrupts_enable();
    spin();
    EXPECT_TRAP(CAUSE_TIMER, trap_pc, 0);
    CHECK(csr_read(mip) == 0 && (csr_read(mstatus) & 8));

    // In time, and not early.
    uint64_t start = timer_now();
    timer_set(start + 500);
    while (trap_count == 0) {}
    uint64_t now = timer_now();
    EXPECT_TRAP(CAUSE_TIMER, trap_pc, 0);
    CHECK(now >= start + 500 && now < start + 5000);

    // A comparison in the upper half.
    timer_set((uint64_t)1 << 32);
    spin();
    CHECK(trap_count == 0 && csr_read(mip) == 0);
    timer_set(~0ull);
}

static void wait(void) {
    uint64_t start = timer_now();
    timer_set(start + 400);
    wait_for_interrupt();
    CHECK(timer_now() >= start + 400);
    EXPECT_TRAP(CAUSE_TIMER, trap_pc, 0);

    // With interrupts disabled it goes on, and takes none.
    interrupts_disable();
    start = timer_now();
    timer_set(start + 400);
    wait_for_interrupt();
    CHECK(timer_now() >= start + 400 && trap_count == 0);
    wait_for_interrupt();  // still pending: no wait
    CHECK(trap_count == 0);
    timer_set(~0ull);
    interrupts_enable();
    spin();
    CHECK(trap_count == 0);
}

static void external(void) {
    interrupts_select(MIE_EXTERNAL | MIE_TIMER);
    REGISTER(INTERRUPT_PENDING) = 1;
    spin();
    EXPECT_TRAP(CAUSE_EXTERNAL, trap_pc, 0);

    // Both at once: the external one first.
    interrupts_disable();
    timer_set(0);
    REGISTER(INTERRUPT_PENDING) = 1;
    spin();
    CHECK(trap_count == 0 && csr_read(mip) == (MIE_EXTERNAL | MIE_TIMER));
    interrupts_enable();
    spin();
    CHECK(trap_count == 2 && order[0] == CAUSE_EXTERNAL && order[1] == CAUSE_TIMER);
    trap_count = 0;

    // An exception where interrupts are pending and disabled in mie.
    interrupts_select(MIE_TIMER);
    REGISTER(INTERRUPT_PENDING) = 1;
    __asm__ volatile("ecall" ::: "memory");
    CHECK(trap_count == 1 && trap_cause == 11);
    trap_count = 0;
    REGISTER(INTERRUPT_PENDING) = 0;
}

// A table of handlers: interrupts go to 4 * cause behind it, exceptions to its beginning.
__asm__(
    ".text\n.balign 64\nvectors:\n"
    "j vector_0\nj .\nj .\nj .\nj .\nj .\nj .\nj vector_7\nj .\nj .\nj .\nj vector_11\n"
    "vector_0: csrw mscratch, t0\nli t0, 1\nj vectored\n"
    "vector_7: csrw mscratch, t0\nli t0, 7\nj vectored\n"
    "vector_11: csrw mscratch, t0\nli t0, 11\n"
    "vectored: sw t0, vector_taken, t1\ncsrw mie, zero\n"
    "csrr t0, mcause\nbltz t0, 1f\ncsrr t0, mepc\naddi t0, t0, 4\ncsrw mepc, t0\n"
    "1: csrr t0, mscratch\nmret\n");

volatile uint32_t vector_taken;
extern char vectors[];

static void vectored(void) {
    uint32_t handler = csr_read(mtvec);
    csr_write(mtvec, (uint32_t)vectors | 1);
    interrupts_select(0);
    timer_set(0);
    REGISTER(INTERRUPT_PENDING) = 1;
    __asm__ volatile("csrw mie, %0\nnop\nnop" ::"r"(MIE_TIMER) : "t1", "memory");
    CHECK(vector_taken == 7);
    __asm__ volatile("csrw mie, %0\nnop\nnop" ::"r"(MIE_EXTERNAL) : "t1", "memory");
    CHECK(vector_taken == 11);
    __asm__ volatile("ecall" ::: "t1", "memory");
    CHECK(vector_taken == 1);
    REGISTER(INTERRUPT_PENDING) = 0;
    timer_set(~0ull);
    csr_write(mtvec, handler);
}

int main(void) {
    timer();
    wait();
    external();
    vectored();
    return 0;
}
