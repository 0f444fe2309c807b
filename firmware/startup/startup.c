/* SPDX-License-Identifier: Apache-2.0 */
/* From reset to main(): prepares the memory that C expects. Startup code of a core family is in the family's folder. */
#include <stdint.h>

#include "core.h"

/* Laid out by board/link.ld. */
extern uint32_t __data_start[], __data_end[], __bss_start[], __bss_end[], __stack_bottom[];
extern const uint32_t __data_load[];

extern int main(void);
void reset_handler(void);

/* Fill pattern of unused stack. The first word that differs marks the deepest use. */
enum { STACK_PAINT = 0x5AFEC0DE };

/* `<`, not `!=`: sections can be empty, and a compiler assumes that two symbols have different addresses. */
static void prepare_memory(void)
{
    const uint32_t *load = __data_load;
    for (uint32_t *word = __data_start; word < __data_end; word++) {
        *word = *load++;
    }
    for (uint32_t *word = __bss_start; word < __bss_end; word++) {
        *word = 0;
    }
}

static void paint_stack(void)
{
    uint32_t *const used = core_stack_pointer();
    for (volatile uint32_t *word = __stack_bottom; word < used; word++) {
        *word = STACK_PAINT;
    }
}

void reset_handler(void)
{
    core_begin();
    paint_stack();
    prepare_memory();
    main();
    for (;;) {
    }
}
