// Where a control program starts: stack, zeroed .bss, trap vector; then main, whose value becomes the exit code.

#include "memory_map.h"

    .section .text.start, "ax"
    .globl _start
_start:
    la      sp, stack_top
    la      t0, trap_vector
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

// A trap ends a program that has no trap_handler (else see traps.S).
    .balign 4
    .weak trap_vector
trap_vector:
    csrr    a0, mcause
    li      t0, 0x80000000
    or      a0, a0, t0
    j       exit
