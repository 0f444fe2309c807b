/* Interface between the net of the link's tests and the device. */
#ifndef SHIFTER_H
#define SHIFTER_H

#include <stdint.h>

#include "net.h"

/* Memory readable by the host, and writable from WRITABLE_AT on. */
enum { MEMORY = 0x20000000, MEMORY_BYTES = 0x2000, WRITABLE_AT = 0x1000 };

/* PEs of the device: this one, and a neighbour unless PES is 1. */
#ifndef PES
enum { PE = 5, PES = 2 };
#endif
enum { NEIGHBOUR = 6, CONTROL_AT = 0x4000, LAYERS = 40, SIGN = 0x51617 };

void take_time(uint64_t cycles);

/* Stop as after a fault. */
_Noreturn void stop(void);

/* Call before the server starts. */
void name_layers(void);

#endif
