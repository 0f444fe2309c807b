/* What the net of the link's tests wants from the device it runs on. */
#ifndef SHIFTER_H
#define SHIFTER_H

#include <stdint.h>

/* Memory that the host may read, and may write from WRITABLE_AT on. */
enum { MEMORY = 0x20000000, MEMORY_BYTES = 0x2000, WRITABLE_AT = 0x1000 };

void take_time(uint64_t cycles);

/* The next hal_count() is the observer's. */
void expect_observer(void);

/* Stop as after a fault. */
_Noreturn void stop(void);

/* Call it before the server starts. */
void name_layers(void);

#endif
