/* The functions of single precision that kernels in float may call. The device and npukit's reference on the host run
 * this same C, computed in integers (scaled.h), so that both give the same bits. benchmarks/core/libm.py measures errors. */
#ifndef MATH_H
#define MATH_H

float acosf(float x);
float acoshf(float x);
float asinf(float x);
float asinhf(float x);
float atan2f(float y, float x);
float atanf(float x);
float atanhf(float x);
float ceilf(float x);
float copysignf(float x, float y);
float cosf(float x);
float coshf(float x);
float erff(float x);
float exp10f(float x);
float exp2f(float x);
float expf(float x);
float expm1f(float x);
float fabsf(float x);
float floorf(float x);
float fmodf(float x, float y);
float hypotf(float x, float y);
float ldexpf(float x, int n);
float log10f(float x);
float log1pf(float x);
float log2f(float x);
float logf(float x);
float nanf(const char *tag);
float nearbyintf(float x);
float powf(float x, float y);
float rintf(float x);
float roundf(float x);
float scalbnf(float x, int n);
float sinf(float x);
float sinhf(float x);
float sqrtf(float x);
float tanf(float x);
float tanhf(float x);
float truncf(float x);

#endif
