/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* minmax.h - the largest or the smallest value of a sliding window, in constant space: the best,
 * the best after it and the best after that (K. Nichols' algorithm; Linux lib/win_minmax.c). Time
 * is whatever counts up, such as packet-timed rounds. */
#ifndef FULLPIPE_CC_MINMAX_H
#define FULLPIPE_CC_MINMAX_H

#include "cc_types.h"

struct cc_minmax_sample {
	u32 t;
	u32 value;
};

struct cc_minmax {
	struct cc_minmax_sample s[3];
};

CC_INLINE void cc_max_reset(struct cc_minmax *m, u32 t, u32 value)
{
	m->s[0].t = m->s[1].t = m->s[2].t = t;
	m->s[0].value = m->s[1].value = m->s[2].value = value;
}

/* Takes a value in; cc_max_of() is then the window's largest. */
CC_INLINE void cc_max_update(struct cc_minmax *m, u32 window, u32 t, u32 value)
{
	u32 age;

	if (value >= m->s[0].value || t - m->s[2].t > window) {
		cc_max_reset(m, t, value);
		return;
	}
	if (value >= m->s[1].value) {
		m->s[1].t = m->s[2].t = t;
		m->s[1].value = m->s[2].value = value;
	} else if (value >= m->s[2].value) {
		m->s[2].t = t;
		m->s[2].value = value;
	}
	age = t - m->s[0].t;
	if (age > window) {
		/* The best is too old: the others move up, once or twice. */
		m->s[0] = m->s[1];
		m->s[1] = m->s[2];
		m->s[2].t = t;
		m->s[2].value = value;
		if (t - m->s[0].t > window) {
			m->s[0] = m->s[1];
			m->s[1] = m->s[2];
		}
	} else if (m->s[1].t == m->s[0].t && age > window / 4) {
		/* A quarter without a better second: take one from the second quarter. */
		m->s[1].t = m->s[2].t = t;
		m->s[1].value = m->s[2].value = value;
	} else if (m->s[2].t == m->s[1].t && age > window / 2) {
		m->s[2].t = t;
		m->s[2].value = value;
	}
}

/* The smallest value of a window is the complement of the complements' largest. */
CC_INLINE void cc_min_reset(struct cc_minmax *m, u32 t, u32 value) { cc_max_reset(m, t, ~value); }
CC_INLINE void cc_min_update(struct cc_minmax *m, u32 window, u32 t, u32 value)
{
	cc_max_update(m, window, t, ~value);
}
CC_INLINE u32 cc_min_of(const struct cc_minmax *m) { return ~m->s[0].value; }
CC_INLINE u32 cc_max_of(const struct cc_minmax *m) { return m->s[0].value; }

#endif
