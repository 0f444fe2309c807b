/* Vela's command streams on an Ethos-U: ethos_u.md. */
#ifndef ETHOS_U_H
#define ETHOS_U_H

#include <stdint.h>

/* Copies the inputs into the arena and starts. `arena` is the scratch memory that Vela has planned. */
int32_t ethos_u_start(const uint8_t *blob, void *arena, void *output, void *first, void *second, void *third,
                      void *fourth);

/* Waits until it is done, and copies the output out of the arena. 0, or the bits of STATUS that say what is wrong. */
int32_t ethos_u_wait(void);

#endif
