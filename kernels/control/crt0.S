// Where a control program starts: stack, zeroed .bss, trap vector; then main, whose value becomes the exit code.

#include "memory_map.h"

    .section .text.start, "ax"
    .globl _start
_start:
    la      sp, stack_top
    la      t0, trap_entry
    csrw    mtvec, t0
    la      t0, bss_start
    la      t1, bss_end
    j       2f
1:  sw      zero, 0(t0)
    addi    t0, t0, 4
2:  bltu    t0, t1, 1b
    call    main

    .globl exit
exit:
    li      t0, EXIT
    sw      a0, 0(t0)
1:  wfi
    j       1b

// Stores or loads what a C function may change.
#define REGISTERS(op) \
    op ra, 0(sp);  op t0, 4(sp);  op t1, 8(sp);  op t2, 12(sp);  op a0, 16(sp); op a1, 20(sp); op a2, 24(sp); \
    op a3, 28(sp); op a4, 32(sp); op a5, 36(sp); op a6, 40(sp);  op a7, 44(sp); op t3, 48(sp); op t4, 52(sp); \
    op t5, 56(sp); op t6, 60(sp)

// Calls trap_handler(mcause, mepc, mtval), and returns to the pc that it returns.
    .balign 4
trap_entry:
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

    .weak trap_handler
trap_handler:
    li      t0, 0x80000000
    or      a0, a0, t0
    j       exit
