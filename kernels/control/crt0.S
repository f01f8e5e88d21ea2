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

// Keeps what a C function may change, calls trap_handler(mcause, mepc, mtval), and returns to the pc that it returns.
    .balign 4
trap_entry:
    addi    sp, sp, -64
    sw      ra, 0(sp)
    sw      t0, 4(sp)
    sw      t1, 8(sp)
    sw      t2, 12(sp)
    sw      a0, 16(sp)
    sw      a1, 20(sp)
    sw      a2, 24(sp)
    sw      a3, 28(sp)
    sw      a4, 32(sp)
    sw      a5, 36(sp)
    sw      a6, 40(sp)
    sw      a7, 44(sp)
    sw      t3, 48(sp)
    sw      t4, 52(sp)
    sw      t5, 56(sp)
    sw      t6, 60(sp)
    csrr    a0, mcause
    csrr    a1, mepc
    csrr    a2, mtval
    call    trap_handler
    csrw    mepc, a0
    lw      ra, 0(sp)
    lw      t0, 4(sp)
    lw      t1, 8(sp)
    lw      t2, 12(sp)
    lw      a0, 16(sp)
    lw      a1, 20(sp)
    lw      a2, 24(sp)
    lw      a3, 28(sp)
    lw      a4, 32(sp)
    lw      a5, 36(sp)
    lw      a6, 40(sp)
    lw      a7, 44(sp)
    lw      t3, 48(sp)
    lw      t4, 52(sp)
    lw      t5, 56(sp)
    lw      t6, 60(sp)
    addi    sp, sp, 64
    mret

    .weak trap_handler
trap_handler:
    li      t0, 0x80000000
    or      a0, a0, t0
    j       exit
