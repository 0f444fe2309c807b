/* Ours, not libmd's: what sha2.h wants of a C library that is not there. */
#ifndef SYS_TYPES_H
#define SYS_TYPES_H

#include <stddef.h>

typedef long off_t;

#endif
