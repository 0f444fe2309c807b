/* What the files of newlib's fdlibm here need to know of the machine: IEEE single precision, subnormal numbers included.
   They are unchanged; this header and math.h take the place of newlib's own. */
#ifndef FDLIBM_H
#define FDLIBM_H

#include <stdint.h>

#include "math.h"

/* The functions under the names that C gives them. */
#define __ieee754_acosf acosf
#define __ieee754_acoshf acoshf
#define __ieee754_asinf asinf
#define __ieee754_atan2f atan2f
#define __ieee754_atanhf atanhf
#define __ieee754_coshf coshf
#define __ieee754_expf expf
#define __ieee754_fmodf fmodf
#define __ieee754_hypotf hypotf
#define __ieee754_log10f log10f
#define __ieee754_logf logf
#define __ieee754_powf powf
#define __ieee754_sinhf sinhf
#define __ieee754_sqrtf sqrtf

/* The variants in single precision throughout. */
#define __OBSOLETE_MATH 1

#define __int32_t int32_t
#define __uint32_t uint32_t

#define FLT_UWORD_IS_FINITE(x) ((x) < 0x7f800000)
#define FLT_UWORD_IS_NAN(x) ((x) > 0x7f800000)
#define FLT_UWORD_IS_INFINITE(x) ((x) == 0x7f800000)
#define FLT_UWORD_IS_ZERO(x) ((x) == 0)
#define FLT_UWORD_IS_SUBNORMAL(x) ((x) < 0x00800000)
#define FLT_UWORD_MAX 0x7f7fffff
#define FLT_UWORD_EXP_MAX 0x43000000
#define FLT_UWORD_EXP_MIN 0x43160000
#define FLT_UWORD_LOG_MAX 0x42b17217
#define FLT_UWORD_LOG_2MAX 0x42b2d4fc
#define FLT_UWORD_LOG_MIN 0x42cff1b5
#define FLT_UWORD_HALF_MAX (FLT_UWORD_MAX - (1 << 23))
#define FLT_LARGEST_EXP (FLT_UWORD_MAX >> 23)
#define FLT_SMALLEST_EXP (-22)
#define HUGE 3.40282346638528860e+38f

union fdlibm_float {
    float value;
    uint32_t word;
};

#define GET_FLOAT_WORD(i, d)          \
    do {                              \
        union fdlibm_float word_of;   \
        word_of.value = (d);          \
        (i) = (int32_t)word_of.word;  \
    } while (0)

#define SET_FLOAT_WORD(d, i)          \
    do {                              \
        union fdlibm_float float_of;  \
        float_of.word = (uint32_t)(i); \
        (d) = float_of.value;         \
    } while (0)

#define SAFE_LEFT_SHIFT(op, amt) (((amt) < 8 * (int)sizeof(op)) ? ((op) << (amt)) : 0)
#define SAFE_RIGHT_SHIFT(op, amt) (((amt) < 8 * (int)sizeof(op)) ? ((op) >> (amt)) : 0)

int32_t __ieee754_rem_pio2f(float x, float *y);
int __kernel_rem_pio2f(float *x, float *y, int e0, int nx, int prec, const int32_t *ipio2);
float __kernel_cosf(float x, float y);
float __kernel_sinf(float x, float y, int iy);
float __kernel_tanf(float x, float y, int iy);

#endif
