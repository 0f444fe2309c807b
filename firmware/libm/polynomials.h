/* SPDX-License-Identifier: Apache-2.0 */
/* Coefficients, the highest first. Made by tests/firmware/polynomials.py. */
#ifndef POLYNOMIALS_H
#define POLYNOMIALS_H

#include <stdint.h>

/* (e^r - 1 - r) / r^2, from -0.347 to 0.347, to 2^-21 */
#define EXP_COUNT 5
static const float EXP[EXP_COUNT] = {
    0x1.6d119a0000000p-10F,
    0x1.120c000000000p-7F,
    0x1.5555180000000p-5F,
    0x1.5554dc0000000p-3F,
    0x1.0000000000000p-1F,
};

/* 2^x, from -0.5 to 0.5, in units of 2^-30, to 2^-32 */
#define POWER_OF_TWO_COUNT 8
static const int32_t POWER_OF_TWO[POWER_OF_TWO_COUNT] = {
    16432,
    166105,
    1431671,
    10327276,
    59597083,
    257941253,
    744261118,
    1073741824,
};

/* (e^x - 1) / x, from -0.5 to 0.5, in units of 2^-30, to 2^-30 */
#define EXPM1_COUNT 8
static const int32_t EXPM1[EXPM1_COUNT] = {
    26779,
    214528,
    1491285,
    8947616,
    44739244,
    178956982,
    536870912,
    1073741824,
};

/* sinh r / r of r^2, from 0 to 1, in units of 2^-30, to 2^-30 */
#define SINH_COUNT 5
static const int32_t SINH[SINH_COUNT] = {
    3027,
    212984,
    8947870,
    178956968,
    1073741824,
};

/* tanh r / r of r^2, from 0 to 0.25, in units of 2^-30, to 2^-30 */
#define TANH_COUNT 6
static const int32_t TANH[TANH_COUNT] = {
    -7099596,
    22842593,
    -57867409,
    143160926,
    -357913842,
    1073741824,
};

/* sin(r pi / 2) / r of r^2, from 0 to 0.25, in units of 2^-30, to 2^-30 */
#define SINE_COUNT 5
static const int32_t SINE[SINE_COUNT] = {
    169873,
    -5026471,
    85569259,
    -693598667,
    1686629713,
};

/* cos(r pi / 2) of r^2, from 0 to 0.25, in units of 2^-30, to 2^-30 */
#define COSINE_COUNT 5
static const int32_t COSINE[COSINE_COUNT] = {
    970263,
    -22398329,
    272375233,
    -1324675869,
    1073741824,
};

/* arctan r / r of r^2, from 0 to 1, in units of 2^-30, to 2^-30 */
#define ARC_TANGENT_COUNT 11
static const int32_t ARC_TANGENT[ARC_TANGENT_COUNT] = {
    1135597,
    -7549124,
    23528847,
    -47167772,
    71782664,
    -94328684,
    118656753,
    -153315043,
    214743620,
    -357913825,
    1073741824,
};

/* erf r / r of r^2, from 0 to 1, in units of 2^-30, to 2^-30 */
#define ERF_COUNT 8
static const int32_t ERF[ERF_COUNT] = {
    -10380,
    120967,
    -910971,
    5606040,
    -28846537,
    121158692,
    -403862630,
    1211587905,
};

/* 1 - erf(x) of x - 1.5, from -0.5 to 0.5, in units of 2^-30, to 2^-30 */
#define ERF_FROM_1_COUNT 10
static const int32_t ERF_FROM_1[ERF_FROM_1_COUNT] = {
    -1670088,
    2579330,
    5056888,
    -20759251,
    15965747,
    47888315,
    -148983930,
    191550619,
    -127700425,
    36394322,
};

/* 1 - erf(x) of (x - 3) / 2, from -0.5 to 0.5, in units of 2^-30, to 2^-30 */
#define ERF_FROM_2_COUNT 12
static const int32_t ERF_FROM_2[ERF_FROM_2_COUNT] = {
    21156589,
    -24348513,
    -6772100,
    38810433,
    -53801528,
    50504714,
    -34920909,
    17954632,
    -6778484,
    1794009,
    -299043,
    23720,
};

/* log2((1 + r) / (1 - r)) / r of r^2, from 0 to 0.0295, in units of 2^-61, to 2^-40 */
#define LOG2_COUNT 6
static const uint64_t LOG2[LOG2_COUNT] = {
    0x90DB14F6DE63B80U,
    0xA3CA84528E98D80U,
    0xD30D181C871A600U,
    0x12776C2922609F00U,
    0x1EC709DC53C4F900U,
    0x5C551D94AE095400U,
};

#endif
