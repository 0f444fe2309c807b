/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The end of the worker where there is no way on. Its last line on standard error says why, its status that it does. */
#ifndef NEED_H
#define NEED_H

#include <stdio.h>
#include <stdlib.h>

enum { GAVE_UP = 75 };

static inline _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "%s\n", why);
    fflush(stderr);
    _Exit(GAVE_UP);
}

/* Memory that was asked for. */
static inline void *needed(void *memory)
{
    if (memory == NULL) {
        give_up("out of memory");
    }
    return memory;
}

#endif
