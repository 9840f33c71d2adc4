/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fixed.c - holds cc/fixed.h, cc/minmax.h and cc/bytes.h against exact arithmetic: 128-bit
 * integers, the window's values themselves, and for logarithm and power the C library's long
 * double, whose error is a thousandth of the bounds that are checked.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../cc/bytes.h"
#include "../../cc/fixed.h"
#include "../../cc/minmax.h"

#define DRAWS 1000000u

typedef unsigned __int128 u128;

static u64 state = 88172645463325252ull;

static u64 draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Each magnitude as likely. */
static u64 magnitude(void) { return draw() >> draw() % 64; }

static void hold(int is_true, const char *what, u64 of)
{
	if (is_true)
		return;
	printf("%s of %llu\n", what, of);
	exit(1);
}

static void check_logarithm(u64 value)
{
	u32 log = cc_log2(value), q16 = cc_log2_q16(value);
	long double error;

	if (!value) {
		hold(!log && !q16, "logarithm", value);
		return;
	}
	hold(value >> log == 1, "cc_log2", value);
	error = log2l((long double)value) * CC_Q16_ONE - q16;
	hold(error > -1e-9L && error < 2, "cc_log2_q16", value);
	hold(q16 >> 16 == log, "whole part of cc_log2_q16", value);
}

static void check_power(u32 exponent)
{
	u32 whole = exponent >> 16 < 47 ? exponent >> 16 : 47;
	long double exact = exp2l(whole + (long double)(exponent & 0xffff) / CC_Q16_ONE + 16);
	long double error = (long double)cc_exp2_q16(exponent) - exact;

	hold(error < exact / (1 << 26) && error > -1 - exact / (1 << 26), "cc_exp2_q16", exponent);
}

static void check_root(u64 value)
{
	u64 root = cc_sqrt(value);

	hold(root * root <= value && (u128)(root + 1) * (root + 1) > value, "cc_sqrt", value);
}

static void check_cube_root(u64 value)
{
	u64 root = cc_cbrt(value);
	u128 above = (u128)(root + 1) * (root + 1) * (root + 1);

	hold((u128)root * root * root <= value && above > value, "cc_cbrt", value);
}

/* Every exponent of a fraction, and every cube and what is next to it, which is where a cube root
 * changes. */
static void check_all(void)
{
	u64 root;
	u32 i;

	for (i = 0; i < 64; i++) {
		check_logarithm(1ull << i);
		check_logarithm((1ull << i) - 1);
		check_root((1ull << i) - 1);
	}
	for (i = 0; i < 50u << 16; i++)
		check_power(i);
	check_power(~0u);
	for (root = 0; root <= 2642245; root++) {
		check_cube_root(root * root * root);
		check_cube_root(root * root * root + root);
		if (root)
			check_cube_root(root * root * root - 1);
	}
	check_cube_root(~0ull);
	check_root(~0ull);
	check_root(0);
	check_logarithm(~0ull);
}

static void check_some(void)
{
	u64 root, value;
	u32 i;

	for (i = 0; i < DRAWS; i++) {
		value = magnitude();
		check_logarithm(value);
		check_root(value);
		check_cube_root(value);
		root = (u32)magnitude();
		check_root(root * root);
		check_root(root * root - 1);
	}
}

static void check_division(void)
{
	static const s64 ends[] = {0,         1,         -1,       2, -2, 0x7fffffff, -0x80000000ll,
				   INT64_MAX, INT64_MIN, 1ll << 32};
	u32 count = sizeof(ends) / sizeof(ends[0]), i;

	for (i = 0; i < DRAWS; i++) {
		s64 a = i < count * count ? ends[i % count] : (s64)magnitude();
		s64 b = i < count * count ? ends[i / count] : (s64)magnitude();
		s64 exact;

		if (i >= count * count) {
			a = draw() & 1 ? a : (s64)(0 - (u64)a);
			b = draw() & 1 ? b : (s64)(0 - (u64)b);
		}
		exact = b ? (s64)(u64)((__int128)a / b) : 0;
		hold(cc_div_s64(a, b) == exact, "cc_div_s64", (u64)a);
		exact = (s32)b ? (s32)(u32)((s64)(s32)a / (s32)b) : 0;
		hold(cc_div_s32((s32)a, (s32)b) == exact, "cc_div_s32", (u64)a);
	}
}

/* A constant input is reached to a part in 2^shift, from above and from below. */
static void check_average(void)
{
	u32 shift, i;

	for (shift = 0; shift < 16; shift++) {
		u64 sample = draw() >> 20, rising = 0, falling = sample << (shift + 1);

		for (i = 0; i < 60u << shift; i++) {
			rising = cc_ewma(rising, sample, shift);
			falling = cc_ewma(falling, sample, shift);
		}
		hold(rising >> shift == sample, "cc_ewma from below", shift);
		hold(falling >> shift == sample, "cc_ewma from above", shift);
	}
}

/* The filters keep three values: what they give is of the window, and at least the largest (at most
 * the smallest) of its last quarter; a new extreme counts at once. */
static void check_windows(void)
{
	enum { LENGTH = 4000, WINDOW = 100 };
	static u32 values[LENGTH];
	struct cc_minmax most, least;
	u32 t, i;

	for (t = 0; t < LENGTH; t++) {
		u32 max = 0, min = ~0u, recent_max = 0, recent_min = ~0u;

		values[t] = (u32)draw() % 1000 + (t % 700) * 2;
		if (!t) {
			cc_max_reset(&most, t, values[t]);
			cc_min_reset(&least, t, values[t]);
		} else {
			cc_max_update(&most, WINDOW, t, values[t]);
			cc_min_update(&least, WINDOW, t, values[t]);
		}
		for (i = t < WINDOW ? 0 : t - WINDOW; i <= t; i++) {
			max = values[i] > max ? values[i] : max;
			min = values[i] < min ? values[i] : min;
			if (t - i <= WINDOW / 4) {
				recent_max = values[i] > recent_max ? values[i] : recent_max;
				recent_min = values[i] < recent_min ? values[i] : recent_min;
			}
		}
		hold(cc_max_of(&most) <= max && cc_max_of(&most) >= recent_max, "largest", t);
		hold(cc_min_of(&least) >= min && cc_min_of(&least) <= recent_min, "smallest", t);
	}
}

/* Whatever the pieces, the packets are those of all bytes together. */
static void check_bytes(void)
{
	u32 mss_bytes, i;

	for (mss_bytes = 1; mss_bytes < 70000; mss_bytes += 999) {
		struct cc_byte_count count = {0, 0};
		u64 bytes = 0, packets = 0;

		for (i = 0; i < 200; i++) {
			u64 piece = draw() % 5000;

			bytes += piece;
			packets += cc_count_bytes(&count, piece, mss_bytes);
			hold(packets == bytes / mss_bytes, "cc_count_bytes", bytes);
			hold(count.packets == (u32)packets, "its counter", bytes);
			hold(cc_packets_up(bytes, mss_bytes) == packets + (bytes % mss_bytes != 0),
			     "cc_packets_up", bytes);
		}
	}
}

int main(void)
{
	check_bytes();
	check_all();
	check_some();
	check_division();
	check_average();
	check_windows();
	printf("fixed.h: exact\n");
	return 0;
}
