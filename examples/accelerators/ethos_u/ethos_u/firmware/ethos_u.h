/* Vela's command streams on an Ethos-U: ethos_u.md. */
#ifndef ETHOS_U_H
#define ETHOS_U_H

#include <stdint.h>

/* Copy inputs that lie elsewhere into the arena, and start. `arena`: the scratch memory planned by Vela. Return 0, or
 * -1 for a bad blob. */
int32_t ethos_u_start(const uint8_t *blob, void *arena, void *output, void *first, void *second, void *third,
                      void *fourth);

/* Wait for the end. Copy the output if its place is outside the arena. Return 0, or the error bits of STATUS. */
int32_t ethos_u_wait(void);

#endif
