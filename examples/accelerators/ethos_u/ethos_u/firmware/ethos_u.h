/* Vela's command streams on an Ethos-U: ethos_u.md. */
#ifndef ETHOS_U_H
#define ETHOS_U_H

#include <stdint.h>

/* Starts, with the inputs in the arena: those that lie elsewhere are copied. `arena` is the scratch memory that Vela has
 * planned. */
int32_t ethos_u_start(const uint8_t *blob, void *arena, void *output, void *first, void *second, void *third,
                      void *fourth);

/* Waits until it is done, and copies the output if it shall lie elsewhere. 0, or the bits of STATUS that say what is wrong. */
int32_t ethos_u_wait(void);

#endif
