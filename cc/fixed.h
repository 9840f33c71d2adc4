/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fixed.h - integer arithmetic that eBPF lacks: logarithm, power, roots, wide products, signed
 * division, moving averages and random numbers (minmax.h has the largest and smallest of a window).
 * It must not know an algorithm or a host.
 *
 * Loops have a constant number of steps, and arithmetic stands where a branch would, so that a
 * verifier follows one path. docs/reference/fixed-point.md has errors and costs.
 *
 * Q16 counts in 1/65536.
 */
#ifndef FULLPIPE_CC_FIXED_H
#define FULLPIPE_CC_FIXED_H

#include "cc_types.h"

#define CC_Q16_ONE 65536u

/* 1 if a > b, else 0; both below 2^63. */
CC_INLINE u32 cc_is_above(u64 a, u64 b) { return (u32)((b - a) >> 63); }

/* The smaller one; both below 2^63. */
CC_INLINE u64 cc_lesser(u64 a, u64 b) { return a ^ ((a ^ b) & (0 - (u64)cc_is_above(a, b))); }

/* floor(log2(value)); 0 of 0. */
CC_INLINE u32 cc_log2(u64 value)
{
	u32 log = cc_is_above(value >> 32, 0) << 5, step;

	value >>= log;
	step = cc_is_above(value, 0xffff) << 4;
	value >>= step;
	log += step;
	step = cc_is_above(value, 0xff) << 3;
	value >>= step;
	log += step;
	step = cc_is_above(value, 0xf) << 2;
	value >>= step;
	log += step;
	step = cc_is_above(value, 3) << 1;
	value >>= step;
	return log + step + cc_is_above(value, 1);
}

/* log2(value) in Q16; 0 of 0. Never above the logarithm, and less than 2^-15 below it: a bit of the
 * fraction for each squaring of the mantissa. */
CC_INLINE u32 cc_log2_q16(u64 value)
{
	u32 whole = cc_log2(value), result = whole, i;
	u64 mantissa = value << (63 - whole) >> 32; /* 1.0 is 2^31 */

	for (i = 0; i < 16; i++) {
		u32 bit;

		mantissa = mantissa * mantissa >> 31;
		bit = (u32)(mantissa >> 32);
		mantissa >>= bit;
		result = result << 1 | bit;
	}
	return result;
}

/* 2^exponent in Q16, of an exponent in Q16: the Taylor series of e^(x ln 2), whose coefficients
 * (ln 2)^k / k! stand in 2^-30. The relative error is below 2^-26, before rounding down to Q16. An
 * exponent of 47 or more counts as 47 and its fraction. */
CC_INLINE u64 cc_exp2_q16(u32 exponent)
{
	u64 x = (u64)(exponent & (CC_Q16_ONE - 1)) << 14, sum = 109;

	sum = 1419 + (sum * x >> 30);
	sum = 16377 + (sum * x >> 30);
	sum = 165394 + (sum * x >> 30);
	sum = 1431680 + (sum * x >> 30);
	sum = 10327387 + (sum * x >> 30);
	sum = 59597083 + (sum * x >> 30);
	sum = 257941248 + (sum * x >> 30);
	sum = 744261118 + (sum * x >> 30);
	sum = (1u << 30) + (sum * x >> 30);
	return sum << 16 << cc_lesser(exponent >> 16, 17) >>
	       30 << (cc_lesser(exponent >> 16, 47) - cc_lesser(exponent >> 16, 17));
}

/* floor(sqrt(value)): Newton's method from a power of two above the root, which it never falls
 * below. The first error is at most 100 %, and squares with every step. */
CC_INLINE u32 cc_sqrt(u64 value)
{
	u64 x = 2ull << cc_log2(value) / 2;
	u32 i;

	if (!value)
		return 0;
	for (i = 0; i < 6; i++)
		x = cc_lesser(x, (x + value / x) / 2);
	return (u32)x;
}

/* floor(cbrt(value)), as cc_sqrt(). */
CC_INLINE u32 cc_cbrt(u64 value)
{
	u64 x = 2ull << cc_log2(value) / 3;
	u32 i;

	if (!value)
		return 0;
	for (i = 0; i < 7; i++)
		x = cc_lesser(x, (2 * x + value / (x * x)) / 3);
	return (u32)x;
}

/* floor(a * b / 2^shift) of a product that 64 bits may not hold. The result must fit 64 bits, and
 * so must b * 2^shift. */
CC_INLINE u64 cc_mul_shift(u64 a, u32 b, u32 shift)
{
	return (a >> shift) * b + ((a & ((1ull << shift) - 1)) * b >> shift);
}

/* floor(a * b / 2^shift), at most 2^32 - 1. */
CC_INLINE u32 cc_mul_shift_u32(u64 a, u32 b, u32 shift)
{
	u64 high = (a >> shift) * b, low = (a & ((1ull << shift) - 1)) * b >> shift;

	if (b && a >> shift >> 32)
		return 0xffffffffu;
	return (u32)cc_min_u64(high + low, 0xffffffffu);
}

/* a / b rounded towards 0, as C has it; 0 where b is 0. -2^63 / -1 gives -2^63. */
CC_INLINE s64 cc_div_s64(s64 a, s64 b)
{
	u64 minus_a = (u64)a >> 63, minus_b = (u64)b >> 63, minus = minus_a ^ minus_b;
	u64 dividend = ((u64)a ^ (0 - minus_a)) + minus_a;
	u64 divisor = ((u64)b ^ (0 - minus_b)) + minus_b;

	if (!divisor)
		return 0;
	return (s64)(((dividend / divisor) ^ (0 - minus)) + minus);
}

/* As cc_div_s64(). -2^31 / -1 gives -2^31. */
CC_INLINE s32 cc_div_s32(s32 a, s32 b) { return (s32)cc_div_s64(a, b); }

/* The next value of an exponentially weighted moving average with the gain 2^-shift. The average is
 * kept times 2^shift, so that it loses nothing to rounding and reaches a constant input. */
CC_INLINE u64 cc_ewma(u64 scaled, u64 sample, u32 shift)
{
	return scaled - (scaled >> shift) + sample;
}

/* The state of cc_random_below() from conn->seed. Seeds that differ in a bit give states that
 * differ in half of theirs (the finalizer of MurmurHash3). Never 0, where xorshift would stay. */
CC_INLINE u32 cc_random_start(u32 seed)
{
	seed ^= 0x9e3779b9u;
	seed = (seed ^ seed >> 16) * 0x85ebca6bu;
	seed = (seed ^ seed >> 13) * 0xc2b2ae35u;
	seed ^= seed >> 16;
	return seed ? seed : 1;
}

/* Uniform in [0, below): xorshift32 (Marsaglia, 2003), scaled as Linux get_random_u32_below(). */
CC_INLINE u32 cc_random_below(u32 *random, u32 below)
{
	*random ^= *random << 13;
	*random ^= *random >> 17;
	*random ^= *random << 5;
	return (u32)((u64)*random * below >> 32);
}

#endif
