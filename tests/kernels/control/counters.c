// Counters: what counts, what a write does, and inhibition.

#include "check.h"

int main(void) {
    uint32_t before, after;

    // Between the reads: three instructions, and the first read itself.
    __asm__ volatile("csrr %0, minstret\nnop\nnop\nnop\ncsrr %1, minstret" : "=&r"(before), "=r"(after));
    CHECK(after - before == 4);
    __asm__ volatile("csrr %0, instret\necall\ncsrr %1, instret" : "=&r"(before), "=r"(after)::"memory");
    CHECK(after - before >= 1 + 20);  // the handler's, but not the ecall

    // The value that is written is the one that the next instruction reads.
    __asm__ volatile("csrw minstret, %1\ncsrr %0, minstret" : "=r"(after) : "r"(1000));
    CHECK(after == 1000);
    __asm__ volatile("csrw minstreth, %1\ncsrr %0, minstreth" : "=r"(after) : "r"(7));
    CHECK(after == 7);
    __asm__ volatile(
        "csrw minstreth, zero\ncsrw minstret, %2\nnop\nnop\ncsrr %0, minstret\ncsrr %1, minstreth"
        : "=&r"(before), "=r"(after)
        : "r"(0xffffffff));
    CHECK(before == 1 && after == 1);
    CHECK(csr_read(instreth) == 1);

    // The instruction that inhibits is the last to count, and the one that allows does not.
    __asm__ volatile("csrw minstret, zero\ncsrw mcountinhibit, %1\nnop\nnop\ncsrr %0, minstret" : "=r"(after) : "r"(4));
    CHECK(after == 1);
    __asm__ volatile("csrw mcountinhibit, zero\nnop\ncsrr %0, minstret" : "=r"(after));
    CHECK(after == 2);
    csr_write(mcountinhibit, 0xffffffff);
    CHECK(csr_read(mcountinhibit) == 5);
    before = csr_read(mcycle);
    CHECK(csr_read(mcycle) == before && csr_read(cycle) == before);
    csr_write(mcountinhibit, 0);

    // Cycles and time run at the same rate; a program needs at least a cycle for an instruction.
    uint32_t cycle = csr_read(mcycle), time = csr_read(time), instret = csr_read(minstret);
    for (int i = 0; i < 100; i++) __asm__ volatile("nop" ::: "memory");
    uint32_t cycles = csr_read(mcycle) - cycle, times = csr_read(time) - time, retired = csr_read(minstret) - instret;
    CHECK(cycles >= retired - 4 && times >= cycles - 100 && times <= cycles + 100);
    csr_write(mcycleh, 3);
    CHECK(csr_read(cycleh) == 3);
    CHECK(csr_read(timeh) == 0);

    // The timer's registers say the same as the CSR.
    uint32_t first = csr_read(time), middle = (uint32_t)timer_now(), last = csr_read(time);
    CHECK(first <= middle && middle <= last);
    return 0;
}

uint32_t trap_handler(uint32_t cause, uint32_t pc, uint32_t value) {
    (void)value;
    if (cause != 11) exit(0x80000000u | cause);
    return pc + 4;
}
