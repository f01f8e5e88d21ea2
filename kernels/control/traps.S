// Traps of programs that define a trap_handler; others are linked without this.

// Stores or loads what a C function may change.
#define REGISTERS(op) \
    op ra, 0(sp);  op t0, 4(sp);  op t1, 8(sp);  op t2, 12(sp);  op a0, 16(sp); op a1, 20(sp); op a2, 24(sp); \
    op a3, 28(sp); op a4, 32(sp); op a5, 36(sp); op a6, 40(sp);  op a7, 44(sp); op t3, 48(sp); op t4, 52(sp); \
    op t5, 56(sp); op t6, 60(sp)

// Calls trap_handler(mcause, mepc, mtval), and returns to the pc that it returns.
    .section .text.trap, "ax"
    .balign 4
    .globl trap_vector
trap_vector:
    addi    sp, sp, -64
    REGISTERS(sw)
    csrr    a0, mcause
    csrr    a1, mepc
    csrr    a2, mtval
    call    trap_handler
    csrw    mepc, a0
    REGISTERS(lw)
    addi    sp, sp, 64
    mret
