// Control program of the digits network: classifies a batch with BF16 products, and again with FP32 products if it is
// unsure of any image of it: if the largest probability of one is below a threshold.
//
// Arguments: as in arguments_t below; kernels.models.digits.network makes them.

#include "core.h"

typedef struct {
    uint32_t images;
    uint32_t lanes;      // images of a tile, one a partition
    uint32_t address;    // in SBUF, of the largest probability of each image of the first tile
    uint32_t pitch;      // bytes from there to the next tile's
    uint32_t threshold;  // FP32
    uint32_t semaphores; // to clear between the sections (see semaphores_clear)
    uint32_t sections[]; // two of them (see run_section): with BF16, with FP32 products
} arguments_t;

// Counts the images below the threshold, and says so. Positive FP32 numbers compare as the integers of their bits.
static uint32_t count_unsure(const arguments_t *arguments, const char *products) {
    uint32_t unsure = 0, lane = 0, address = arguments->address;
    for (uint32_t image = 0; image < arguments->images; image++) {
        if (sbuf_read(lane, address) < arguments->threshold) unsure++;
        if (++lane == arguments->lanes) {
            lane = 0;
            address += arguments->pitch;
        }
    }
    puts(products);
    puts(": unsure of ");
    print_unsigned(unsure);
    puts(" of ");
    print_unsigned(arguments->images);
    puts(" images\n");
    return unsure;
}

int main(void) {
    const arguments_t *arguments = (const arguments_t *)image_arguments;
    const uint32_t *again = run_section(arguments->sections);
    if (count_unsure(arguments, "bf16")) {
        semaphores_clear(arguments->semaphores);
        run_section(again);
        count_unsure(arguments, "fp32");
    }
    return 0;
}
