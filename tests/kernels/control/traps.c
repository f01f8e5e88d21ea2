// Every exception: cause, mepc, mtval, and that nothing else happened. MEMORY_END is where memory ends.

#include "check.h"

static volatile uint32_t resume;

// Goes on behind what trapped, or where `resume` says if it is not 0.
uint32_t trap_handler(uint32_t cause, uint32_t pc, uint32_t value) {
    note_trap(cause, pc, value);
    uint32_t next = resume ? resume : pc + 4;
    resume = 0;
    return next;
}

// Executes an instruction on `a` (rs1) and `b` (rd or rs2), whose address it leaves in `at`; b may change.
#define TRY(instruction, a, b, at)                                              \
    __asm__ volatile("la %1, 1f\n1: " instruction                               \
                     : "+r"(b), "=&r"(at)                                       \
                     : "r"((uint32_t)(a))                                       \
                     : "memory", "ra")

// What an instruction on `a` and `b` does is to trap, and nothing else; `value` may have `at_`, its address.
#define TRAPS(instruction, a, b, cause, value)  \
    do {                                        \
        uint32_t kept_ = b, at_;                \
        TRY(instruction, a, kept_, at_);        \
        EXPECT_TRAP(cause, at_, value);         \
        CHECK(kept_ == b);                      \
    } while (0)

#define LOADS(instruction, address, cause) TRAPS(instruction " %0, 0(%2)", address, 0x1234, cause, address)
#define STORES(instruction, address, value, cause) TRAPS(instruction " %0, 0(%2)", address, 0xa1b2c3d4, cause, value)
#define ILLEGAL(word) TRAPS(".word " #word, 0, 0, 2, word)
#define ILLEGAL_CSR(instruction) TRAPS(instruction, 1, 77, 2, *(uint32_t *)at_)

static void exceptions(void) {
    uint32_t at, x = 0;
    TRY("ecall", 0, x, at);
    EXPECT_TRAP(11, at, 0);
    TRY("ebreak", 0, x, at);
    EXPECT_TRAP(3, at, at);

    ILLEGAL(0x00000000);
    ILLEGAL(0xffffffff);
    ILLEGAL(0x10200073);  // sret
    ILLEGAL(0x12000073);  // sfence.vma
    ILLEGAL(0x0000100b);  // custom-0
    ILLEGAL(0x02051513);  // slli by 32
    ILLEGAL(0x0000b503);  // ld
    ILLEGAL(0x0000202f);  // lr.w's opcode
    ILLEGAL(0x30200173);  // mret with a destination
    ILLEGAL_CSR("csrw cycle, %2");
    ILLEGAL_CSR("csrrw %0, mhartid, x0");
    ILLEGAL_CSR("csrrs %0, mvendorid, %2");
    ILLEGAL_CSR("csrr %0, 0x180");
    ILLEGAL_CSR("csrr %0, 0x3a0");
    ILLEGAL_CSR("csrr %0, 0x7a0");
    TRY("csrrs %0, mhartid, x0", 0, x, at);
    CHECK(trap_count == 0 && x == 0);
}

static void accesses(void) {
    LOADS("lw", 0x00000010, 5);
    LOADS("lb", MEMORY_END, 5);
    LOADS("lw", 0x40003ffc, 5);
    STORES("sb", 0x7fffffff, 0x7fffffff, 7);
    STORES("sw", MEMORY_END, MEMORY_END, 7);

    // Registers and windows take aligned accesses alone, memory any.
    LOADS("lh", TIMER_NOW + 1, 4);
    LOADS("lw", TIMER_NOW + 2, 4);
    STORES("sh", TIMER_COMPARE + 3, TIMER_COMPARE + 3, 6);
    STORES("sw", 0x10000001, 0x10000001, 6);

    // Across the end of memory the part that is there is loaded or stored, and the other one traps.
    volatile uint32_t *last = (volatile uint32_t *)(MEMORY_END - 4);
    uint32_t at, x = 0x1234;
    *last = 0x11223344;
    TRY("lw %0, 0(%2)", MEMORY_END - 3, x, at);
    EXPECT_TRAP(5, at, MEMORY_END);
    CHECK(x == 0x1234);
    STORES("sw", MEMORY_END - 2, MEMORY_END, 7);
    CHECK(*last == 0xc3d43344);
    STORES("sh", MEMORY_END - 1, MEMORY_END, 7);
    CHECK(*last == 0xd4d43344);

    static volatile uint32_t pair[2];
    for (uint32_t shift = 0; shift < 4; shift++) {
        pair[0] = pair[1] = 0;
        x = 0x89abcdef;
        TRY("sw %0, 0(%2)", (uint32_t)pair + shift, x, at);
        uint64_t expected = (uint64_t)0x89abcdef << 8 * shift;
        CHECK(pair[0] == (uint32_t)expected && pair[1] == (uint32_t)(expected >> 32));
        TRY("lh %0, 0(%2)", (uint32_t)pair + shift, x, at);
        CHECK(x == 0xffffcdef);
        TRY("lhu %0, 0(%2)", (uint32_t)pair + shift, x, at);
        CHECK(x == 0xcdef);
        TRY("lw %0, 0(%2)", (uint32_t)pair + shift, x, at);
        CHECK(x == 0x89abcdef);
    }
    CHECK(trap_count == 0);
}

static void jumps(void) {
    uint32_t at, x = 0x1234;
    // A misaligned target is the jump's own trap, and the link is not written; bit 0 of a target is dropped.
    TRY("jalr %0, 2(%2)", (uint32_t)&exceptions, x, at);
    EXPECT_TRAP(0, at, (uint32_t)&exceptions + 2);
    TRY("jalr %0, 3(%2)", (uint32_t)&exceptions, x, at);
    EXPECT_TRAP(0, at, (uint32_t)&exceptions + 2);
    CHECK(x == 0x1234);
    TRY(".word 0x0020006f", 0, x, at);  // jal x0, 2
    EXPECT_TRAP(0, at, at + 2);
    TRY(".word 0x00000163", 0, x, at);  // beq x0, x0, 2
    EXPECT_TRAP(0, at, at + 2);
    TRY(".word 0x00001163", 0, x, at);  // bne x0, x0, 2: not taken, no trap
    CHECK(trap_count == 0);

    // Where there is no memory, the fetch traps, not the jump.
    static const uint32_t nowhere[] = {0x00000100, MEMORY_END};
    for (int i = 0; i < 2; i++) {
        __asm__ volatile("la %0, 1f\nsw %0, 0(%1)\njr %2\n1:" : "=&r"(x) : "r"(&resume), "r"(nowhere[i]) : "memory");
        EXPECT_TRAP(1, nowhere[i], nowhere[i]);
    }
    // The words behind the last one are fetched ahead, and mean nothing.
    volatile uint32_t *last = (volatile uint32_t *)(MEMORY_END - 4);
    *last = 0x00008067;  // ret
    __asm__ volatile("fence.i\njalr %0" ::"r"(last) : "ra", "memory");
    CHECK(trap_count == 0);
}

#define KEEPS(name, written, read) \
    do {                           \
        csr_write(name, written);  \
        CHECK(csr_read(name) == read); \
    } while (0)

static void registers(void) {
    CHECK(csr_read(misa) == (1u << 30 | 1u << 12 | 1u << 8));
    CHECK((csr_read(mstatus) & 0x1800) == 0x1800);
    KEEPS(mstatus, 0xffffffff & ~8u, 0x1880);
    KEEPS(mie, 0xffffffff, 0x880);
    csr_write(mie, 0);
    KEEPS(mip, 0xffffffff, 0);
    KEEPS(mepc, 0xffffffff, 0xfffffffc);
    KEEPS(mscratch, 0xdeadbeef, 0xdeadbeef);
    uint32_t handler = csr_read(mtvec);
    KEEPS(mtvec, 0xffffffff, 0xfffffffd);
    csr_write(mtvec, handler);
    KEEPS(mhpmcounter3, 5, 0);
    CHECK(csr_read(mhpmevent31) == 0);
    CHECK(csr_read(mhartid) == 0 && csr_read(mimpid) == 0);

    // A trap keeps MIE in MPIE, and mret brings it back.
    csr_write(mstatus, 0);
    __asm__ volatile("ecall" ::: "memory");
    CHECK(csr_read(mstatus) == 0x1880);
    trap_count = 0;
}

int main(void) {
    exceptions();
    accesses();
    jumps();
    registers();
    return 0;
}
