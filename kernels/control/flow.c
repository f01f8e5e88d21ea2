// The stock program of sections and of what decides at run time which of them comes next: registers, which are words of
// SBUF, and branches on them.
//
// Arguments: how often branches may go back; the operations, four words each (kernels/control/flow.py has the codes);
// the sections (see run_section in core.h).
// Returns 0, 0x40000000 | cause at the first error, or 0x20000000 | the number of the branch that went back too often.

#include "core.h"

#define ROUNDS_CODE 0x20000000u

int main(void) {
    typedef struct {
        uint32_t code, a, b, to;
    } operation_t;
    const operation_t *const first = (const operation_t *)&image_arguments[1];
    uint32_t rounds = image_arguments[0], changed = 0;
    for (const operation_t *now = first;;) {
        const operation_t *next = now + 1;
        switch (now->code) {
        case END: return 0;
        case RUN: {
            // Only what a section before has counted on is other than zero.
            uint32_t start = now->a & 0xffff, end = now->a >> 16;
            semaphores_clear(start | (end < changed ? end : changed) << 16);
            if (end > changed) changed = end;
            run_section(&image_arguments[now->b]);
            break;
        }
        case SET: REGISTER(now->a) = now->b; break;
        case COPY: REGISTER(now->a) = REGISTER(now->b); break;
        case ADD: REGISTER(now->a) += now->b; break;
        case UNLESS_LESS: {
            int32_t a = (int32_t)REGISTER(now->a), b = (int32_t)REGISTER(now->b);
            if (a >= b) next = first + now->to;
            break;
        }
        case UNLESS:
            if (!REGISTER(now->a)) next = first + now->to;
            break;
        case AGAIN:
            if (!rounds--) exit(ROUNDS_CODE | (uint32_t)(now - first));
            next = first + now->to;
            break;
        }
        now = next;
    }
}
