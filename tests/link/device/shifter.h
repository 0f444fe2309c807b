/* What the net of the link's tests wants from the device it runs on. */
#ifndef SHIFTER_H
#define SHIFTER_H

#include <stdint.h>

#include "net.h"

/* Memory that the host may read, and may write from WRITABLE_AT on. */
enum { MEMORY = 0x20000000, MEMORY_BYTES = 0x2000, WRITABLE_AT = 0x1000 };

/* Its PEs: this one, and a neighbour unless PES is 1. */
#ifndef PES
enum { PE = 5, PES = 2 };
#endif
enum { NEIGHBOUR = 6, CONTROL_AT = 0x4000, LAYERS = 40, SIGN = 0x51617 };

void take_time(uint64_t cycles);

/* Stop as after a fault. */
_Noreturn void stop(void);

/* Call it before the server starts. */
void name_layers(void);

#endif
