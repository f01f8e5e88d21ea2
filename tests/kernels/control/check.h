// Checks for test programs: the exit code is the line of the first that fails, or 0. For the one source of a program.

#pragma once

#include "core.h"

#define CHECK(condition)                \
    do {                                \
        if (!(condition)) exit(__LINE__); \
    } while (0)

// The last trap, and how many there were; a trap handler says so.
volatile uint32_t trap_count, trap_cause, trap_pc, trap_value;

static inline void note_trap(uint32_t cause, uint32_t pc, uint32_t value) {
    trap_count++;
    trap_cause = cause;
    trap_pc = pc;
    trap_value = value;
}

#define EXPECT_TRAP(cause, pc, value)       \
    do {                                    \
        CHECK(trap_count == 1);             \
        CHECK(trap_cause == (cause));       \
        CHECK(trap_pc == (uint32_t)(pc));   \
        CHECK(trap_value == (uint32_t)(value)); \
        trap_count = 0;                     \
    } while (0)
